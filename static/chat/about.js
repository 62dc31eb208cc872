// The chat itself: its title, archive and end. What others change comes with the stream.

import { call } from "./api.js";
import { asking } from "./asking.js";
import { visible, words } from "./html.js";

export class About {
  constructor({ session, complain }) {
    this.session = session;
    this.complain = complain;
    this.title = document.querySelector("#title bdi");
    this.rawTitle = this.title.textContent;
    this.more = document.querySelector("#more");
    this.on("#rename", () => this.rename());
    this.on("#tag", () => this.tag());
    this.on("#context", () => this.choose());
    this.on("#servers", () => this.equip());
    this.archive = document.querySelector("#archive");
    this.on("#archive", () => this.move());
    this.acting = document.querySelector("#acting");
    this.acts = document.querySelector("#acts");
    this.acts?.addEventListener("click", () => this.act().catch(this.complain));
    this.shared = document.querySelector("#shared");
    this.shares = document.querySelector("#shares");
    this.shares?.addEventListener("click", () => this.share().catch(this.complain));
    this.workspace = document.querySelector("#workspace");
    this.workspace?.addEventListener("change", () => this.company());
    this.company();
    document.querySelector("#trust")?.addEventListener("change", () => this.session || this.begun());
    this.wall();
    this.on("#delete", () => this.delete());
    document.addEventListener("click", ({ target }) => this.more.contains(target) || (this.more.open = false));
  }

  on(name, act) {
    document.querySelector(name).addEventListener("click", async () => {
      this.more.open = false;
      this.complain(null); // of what was tried before
      await act().catch(this.complain);
    });
  }

  begin(session, title) {
    this.session = session;
    this.more.hidden = false;
    if (this.workspace) this.workspace.disabled = true; // it stays where it began
    this.begun();
    this.named(title);
  }

  // A chat that begins acts without asking where a wall stands around it, and nowhere else.
  begun() {
    this.acts?.setAttribute("aria-checked", this.isWalled);
    this.wall();
  }

  get isWalled() {
    return this.acting?.dataset.walled.split(" ").includes(this.trust) ?? false;
  }

  // Who may only read has no choice.
  get trust() {
    return document.querySelector("#trust")?.value;
  }

  // What the switch means depends on what it may reach.
  wall() {
    if (!this.acts) return;
    const isAnywhere = this.trust === "full";
    document.querySelector("#acts-here").hidden = isAnywhere;
    document.querySelector("#acts-anywhere").hidden = !isAnywhere;
    document.querySelector("#acts-unwalled").hidden = this.isWalled;
    this.acts.disabled = this.acts.ariaChecked !== "true" && !this.isWalled && !("operator" in this.acting.dataset);
  }

  // What it may do is less from here on, or more again. The stream says when it is so.
  async act() {
    const { session } = this;
    if (this.acts.ariaChecked !== "true") return call("POST", `/api/chat/${session}/permissions/trust-mode`, { trustMode: true });
    return call("PATCH", `/api/chat/${session}`, { metadata: { permissions: { trustMode: false } } });
  }

  // Who is meant by "this workspace".
  company() {
    if (!this.workspace) return;
    for (const said of document.querySelectorAll("#shares-means [data-workspace]")) said.hidden = said.dataset.workspace !== this.workspace.value;
  }

  // The stream says when it is so.
  share() {
    const visibility = this.shares.ariaChecked === "true" ? "private" : "workspace";
    return call("PATCH", `/api/chat/${this.session}`, { visibility });
  }

  named(title) {
    this.title.textContent = visible(title);
    this.rawTitle = title;
    this.tell();
  }

  // How many people's answers are waited for stands in front.
  tell(waiting = this.waiting ?? 0) {
    this.waiting = waiting;
    const title = this.session ? `${visible(this.rawTitle)} · Parachute` : "Parachute";
    document.title = waiting ? `(${waiting}) ${title}` : title;
  }

  async rename() {
    const title = await asking({ title: words.rename, yes: words.renameYes, value: this.rawTitle });
    if (title) await call("PATCH", `/api/chat/${this.session}`, { title });
  }

  // A line of them; what was taken out of it is taken off the chat.
  async tag() {
    const path = `/api/chat/${this.session}/tags`;
    const { tags } = await call("GET", path);
    const line = await asking({ title: words.tags, text: words.tagsText, yes: words.save, value: tags.join(", "), longest: 2000 });
    if (line === null) return;
    const wanted = parts(line.toLowerCase(), ",");
    for (const tag of wanted.filter((each) => !tags.includes(each))) await call("POST", path, { tag });
    for (const tag of tags.filter((each) => !wanted.includes(each))) await call("DELETE", `${path}/${encodeURIComponent(tag)}`);
  }

  // The folders whose notes for agents its agent is told. A name may hold a comma.
  async choose() {
    const path = `/api/chat/${this.session}/contexts`;
    const { contexts } = await call("GET", path);
    const value = contexts.map((each) => each.path).join("; ");
    const line = await asking({ title: words.context, text: words.contextText, yes: words.save, value, longest: 4000 });
    if (line !== null) await call("PUT", path, { paths: parts(line, ";") });
  }

  // Which of the servers that owners accepted it has: a line of them.
  async equip() {
    const path = `/api/chat/${this.session}/mcp`;
    const { servers } = await call("GET", path);
    const names = servers.map((each) => each.name);
    const value = servers.filter((each) => each.given).map((each) => each.name).join(", ");
    const text = names.length ? words.serversText.replace("{names}", names.join(", ")) : words.noServers;
    const line = await asking({ title: words.servers, text, yes: words.save, value, longest: 4000 });
    if (line === null) return;
    const wanted = parts(line.toLowerCase(), ",");
    const unknown = wanted.find((name) => !names.includes(name));
    if (unknown) throw new Error(words.unknownServer.replace("{name}", unknown));
    for (const { name, given } of servers) {
      const on = wanted.includes(name);
      if (on !== given) await call("PUT", `${path}/${encodeURIComponent(name)}`, { on });
    }
  }

  // Into the archive, or out of it.
  async move() {
    const isIn = "archived" in this.archive.dataset;
    await call("POST", `/api/chat/${this.session}/${isIn ? "unarchive" : "archive"}`, {});
    if (!isIn) location.assign("/");
  }

  async delete() {
    const yes = await asking({ title: words.delete, text: words.deleteText, yes: words.deleteYes, danger: true });
    if (!yes) return;
    await call("DELETE", `/api/chat/${this.session}`);
    location.assign("/");
  }

  changed(fields) {
    if (fields.title) this.named(fields.title);
    if (fields.visibility) {
      this.shared.hidden = fields.visibility !== "workspace";
      this.shares?.setAttribute("aria-checked", !this.shared.hidden);
    }
    if ("archived" in fields) {
      document.querySelector("#is-archived").hidden = !fields.archived;
      this.archive.toggleAttribute("data-archived", fields.archived);
      this.archive.textContent = fields.archived ? this.archive.dataset.out : this.archive.dataset.in;
    }
    for (const [name, field] of Object.entries({ model: "model", trust: "trustLevel" })) {
      const choice = document.querySelector(`#${name}`);
      if (choice && fields[field]) choice.value = choice.dataset.was = fields[field];
    }
    if (fields.metadata) this.kept = fields.metadata;
    if (this.acts && (this.kept || fields.trustLevel)) this.allowed();
  }

  allowed() {
    const { permissions, acts_without_a_wall: isGiven } = this.kept ?? {};
    const isOn = permissions ? permissions.trustMode && (this.isWalled || isGiven === true) : this.acts.ariaChecked === "true";
    this.acts.setAttribute("aria-checked", isOn);
    this.wall();
  }
}

function parts(line, sign) {
  return [...new Set(line.split(sign).map((each) => each.trim()).filter(Boolean))];
}
