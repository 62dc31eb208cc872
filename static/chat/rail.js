// The list of chats: grouped by day, searched, kept current by the stream. On a narrow screen it opens and closes.

import { markup } from "./api.js";
import { element, fragment } from "./html.js";

const DAY = 24 * 60 * 60 * 1000;
const PAUSE = 200; // ms after the last letter, before it is looked for
const LISTED = 50; // as the server sends by itself

export class Rail {
  constructor(complain) {
    this.list = document.querySelector("#chats");
    this.find = document.querySelector("#find");
    this.menu = document.querySelector("#menu");
    this.complain = complain;
    this.session = "";
    this.find.addEventListener("input", () => {
      clearTimeout(this.soon);
      this.soon = setTimeout(() => this.again(), PAUSE);
    });
    this.limit = LISTED;
    this.filters = document.querySelector("#filters");
    this.filters.addEventListener("toggle", () => this.filters.open && this.offer());
    this.filters.addEventListener("change", () => this.again());
    this.end = new IntersectionObserver((seen) => seen.some(({ isIntersecting }) => isIntersecting) && this.more(), { root: this.list });
    this.archive = document.querySelector("#archived");
    this.isArchive = false;
    this.archive.addEventListener("click", () => this.turn());
    this.menu.addEventListener("click", () => this.open(!this.isOpen));
    document.querySelector("main").addEventListener("click", ({ target }) => this.menu.contains(target) || this.open(false));
    this.arrange();
  }

  get isOpen() {
    return document.body.classList.contains("open");
  }

  // On a narrow screen it lies over the page, which is out of reach then.
  get isDrawer() {
    return getComputedStyle(this.menu).display !== "none";
  }

  open(wanted) {
    document.body.classList.toggle("open", wanted);
    for (const part of document.querySelectorAll("main > :not(header), header > :not(#menu)")) part.inert = wanted && this.isDrawer;
    this.menu.setAttribute("aria-expanded", String(wanted));
    if (wanted) this.list.querySelector("a")?.focus();
  }

  show(session) {
    this.session = session;
    this.arrange();
  }

  // What the stream says of the list; while somebody searches, it waits.
  take(html) {
    this.newest = html;
    if (this.isPlain) this.draw(html);
    else if (!this.find.value.trim()) this.search();
  }

  get isPlain() {
    return !this.find.value.trim() && !this.isArchive && !this.chosen.length && this.limit === LISTED;
  }

  // What the list is made shorter by, as [name, value].
  get chosen() {
    return [...this.filters.querySelectorAll("select")].map(({ name, value }) => [name, value]).filter(([, value]) => value);
  }

  // What there is to choose from is asked for when somebody wants to choose.
  async offer() {
    const was = new Map(this.chosen);
    try {
      this.filters.querySelector(".narrowing").replaceChildren(fragment(await markup("/rail/filters")));
      for (const select of this.filters.querySelectorAll("select")) select.value = was.get(select.name) ?? "";
    } catch (error) {
      this.complain(error);
    }
  }

  // From the newest on.
  again() {
    this.limit = LISTED;
    const count = this.filters.querySelector(".n");
    count.hidden = !this.chosen.length;
    count.textContent = String(this.chosen.length);
    this.list.scrollTop = 0;
    return this.search();
  }

  // Somebody has come to the end of the list.
  more() {
    this.end.disconnect();
    this.limit *= 2;
    this.search();
  }

  first() {
    return this.list.querySelector("a");
  }

  clear() {
    this.find.value = "";
    this.again();
  }

  // The archive, or back from it.
  turn() {
    this.isArchive = !this.isArchive;
    this.archive.setAttribute("aria-pressed", String(this.isArchive));
    this.again();
  }

  async search() {
    if (this.isPlain && this.newest) return this.draw(this.newest);
    const wanted = this.wanted();
    try {
      const html = await markup(`/rail?${wanted}`);
      if (wanted === this.wanted()) this.draw(html);
    } catch (error) {
      this.complain(error);
    }
  }

  wanted() {
    const asked = [["search", this.find.value.trim()], ["limit", this.limit], ...this.chosen];
    return new URLSearchParams(this.isArchive ? [...asked, ["archived", ""]] : asked).toString();
  }

  draw(html) {
    const held = this.list.contains(document.activeElement) && document.activeElement.dataset.session;
    this.list.replaceChildren(fragment(html));
    this.arrange();
    if (held) this.link(held)?.focus();
  }

  arrange() {
    const end = this.list.querySelector("[data-more]");
    this.end.disconnect();
    if (end) this.end.observe(end);
    for (const old of this.list.querySelectorAll("h2")) old.parentElement.remove();
    let group = "";
    for (const link of this.list.querySelectorAll("a[data-session]")) {
      link.toggleAttribute("aria-current", link.dataset.session === this.session);
      if (link.dataset.session === this.session) link.setAttribute("aria-current", "page");
      const at = new Date(link.dataset.at);
      link.title = at.toLocaleString();
      const name = this.group(at);
      if (name !== group) link.parentElement.before(heading(name));
      group = name;
    }
  }

  group(at) {
    const { today, yesterday, week, older } = this.list.dataset;
    const midnight = new Date().setHours(0, 0, 0, 0);
    if (at >= midnight) return today;
    if (at >= midnight - DAY) return yesterday;
    return at >= midnight - 6 * DAY ? week : older;
  }

  link(session) {
    return this.list.querySelector(`a[data-session="${CSS.escape(session)}"]`);
  }

  // The chat above or below, for whoever moves by keys.
  step(by) {
    const links = [...this.list.querySelectorAll("a[data-session]")];
    const at = links.findIndex((link) => link.dataset.session === this.session);
    links[at < 0 ? 0 : at + by]?.click();
  }
}

// How many wait for a person, at the way to them.
export function badge(count) {
  const shown = document.querySelector("#inbox .n");
  shown.hidden = count === 0;
  shown.textContent = String(count);
}

function heading(name) {
  const item = element("li");
  item.append(element("h2", "", name));
  return item;
}
