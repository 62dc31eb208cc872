// Where a person is needed: the answers, and the time that is left.

import { call } from "./api.js";
import { words } from "./html.js";

const BEAT = 20_000; // ms: while somebody looks at a card, its clock stands
const STILL = 1000; // ms: that long a card stands in its place before it can be answered
const LOOKS = 100; // ms

export class Asks {
  // `rest` says where whoever has answered goes on when nothing else waits.
  constructor(place, { complain, rest }) {
    this.place = place;
    this.complain = complain;
    this.rest = rest;
    this.stood = new WeakMap(); // of each card: where, and since when
    this.decided = -STILL;
    place.addEventListener("click", ({ target }) => this.clicked(target.closest("button[data-answer]")));
    place.addEventListener("input", ({ target }) => this.chose(target.closest("[data-questions]")));
    place.addEventListener("submit", (event) => this.submitted(event));
    place.addEventListener("toggle", ({ target }) => opensReason(target) && reasonOf(target).focus(), true);
    document.addEventListener("keydown", (event) => this.pressed(event));
    this.seen = new IntersectionObserver((seen) => {
      for (const { isIntersecting, target } of seen) if (isIntersecting) this.opened(target);
    });
    document.addEventListener("visibilitychange", () => this.beat());
    new MutationObserver(() => this.look()).observe(place, { childList: true, subtree: true });
    setInterval(() => this.tick(), 1000);
    setInterval(() => this.beat(), BEAT);
    setInterval(() => this.settle(), LOOKS);
    this.look();
  }

  // Those that this person may answer.
  get waiting() {
    return [...this.place.querySelectorAll('.ask[data-status="pending"]:not([data-operators])')];
  }

  look() {
    this.cards = [...this.place.querySelectorAll(".ask:has(button)")];
    this.join();
    this.settle();
    for (const card of this.waiting) this.seen.observe(card);
  }

  // Calls of one tool in one folder that are asked about at once are one card: they stand together, and the
  // last of them takes the answer for all.
  join() {
    const runs = [];
    for (const card of this.waiting) {
      const run = runs.at(-1);
      if (run && isAlike(run.at(-1), card)) run.push(card);
      else runs.push([card]);
    }
    this.runs = new Map(runs.map((run) => [run.at(-1), run]));
    for (const run of runs) for (const card of run) draw(card, run);
  }

  // All that one answer on this card decides.
  run(card) {
    return this.runs.get(card) ?? [card];
  }

  // Nobody has read what came under their hand a moment ago: where a card comes, moves or is answered, what
  // stands there now takes no answer until it stood still in sight for a while.
  settle() {
    const now = performance.now();
    for (const card of this.cards) {
      const { left, top } = card.getBoundingClientRect();
      const place = `${Math.round(left)} ${Math.round(top)}`;
      const buttons = [...card.querySelectorAll("button")];
      if (this.stood.get(card)?.place !== place || document.hidden || !buttons.some((each) => inSight(each, each))) {
        this.stood.set(card, { place, since: now });
      }
      const waits = String(now - Math.max(this.stood.get(card).since, this.decided) < STILL);
      buttons.forEach((each) => each.setAttribute("aria-disabled", waits));
    }
  }

  isSettled(card) {
    this.settle();
    return card.querySelector("button")?.getAttribute("aria-disabled") === "false";
  }

  // Only a clock that runs is shown: what somebody has in front of them waits for them.
  tick() {
    for (const until of this.place.querySelectorAll("[data-until]")) {
      const left = Math.max(0, Math.ceil((Date.parse(until.dataset.until) - Date.now()) / 1000));
      const clock = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
      const says = "runs" in until.dataset ? `${until.dataset.says} ${clock}` : until.dataset.waits;
      if (until.textContent !== says) until.textContent = says;
    }
  }

  // Somebody has the page in front of them, and the card on the screen.
  beat() {
    if (document.hidden) return;
    for (const card of this.waiting) {
      const { top, bottom } = card.getBoundingClientRect();
      if (bottom > 0 && top < innerHeight) this.opened(card);
    }
  }

  // The end of a clock that stands moves on with each word. It moves no more where somebody had the card open
  // for as long as one may, or where nobody heard the word: then the clock runs.
  async opened(card) {
    const until = card.querySelector("[data-until]");
    if (!until || document.hidden) return; // it has no clock, or nobody looks
    const before = until.dataset.until;
    try {
      const { status, expiresAt } = await call("POST", `/api/permissions/${card.dataset.request}/open`, {});
      if (status !== "pending") return; // the stream says what became of it
      until.dataset.until = expiresAt;
    } catch {
      // nobody is there, and the page says so
    }
    until.toggleAttribute("data-runs", Date.parse(until.dataset.until) <= Date.parse(before));
    this.tick();
  }

  clicked(button) {
    const card = button?.closest(".ask");
    const { answer, scope, pattern } = button?.dataset ?? {};
    if (card && this.isSettled(card)) this.decide(card, answer, { scope, pattern });
  }

  // Y and N for the card that has the focus, or else the first that is seen whole, as long as nobody is writing.
  pressed(event) {
    const wanted = { y: ".primary", n: "[data-answer=deny]" }[event.key.toLowerCase()];
    if (!wanted || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select")) return;
    const approvals = this.waiting.filter((each) => !each.querySelector("[data-questions]"));
    const near = approvals.find((each) => each.contains(event.target)) ?? approvals.find(isWhole);
    const card = near && [...this.runs.keys()].find((last) => this.run(last).includes(near));
    this.clicked(card?.querySelector(wanted));
  }

  // To say nothing is no answer.
  chose(form) {
    if (form) form.querySelector(".row button").disabled = ![...form.querySelectorAll("fieldset")].some((set) => chosen(set).length);
  }

  submitted(event) {
    const form = event.target;
    const card = form.closest(".ask");
    if (!card) return;
    event.preventDefault();
    if (!this.isSettled(card)) return;
    if (form.matches("[data-questions]")) this.answer(card, form);
    else this.decide(card, "deny", {});
  }

  answer(card, form) {
    const answers = Object.fromEntries([...form.querySelectorAll("fieldset")].map((set) => [set.dataset.question, chosen(set)]));
    this.send([card], () => `/api/chat/${card.dataset.session}/answer`, { requestId: card.dataset.request, answers });
  }

  // Whoever wrote why not has said it, by whatever key or button they deny then.
  decide(card, answer, how) {
    const reason = answer === "deny" && reasonOf(card)?.value.trim();
    const cards = how.pattern ? [card] : this.run(card);
    this.send(cards, ({ dataset }) => `${dataset.path}/${answer}`, reason ? { ...how, reason } : how);
  }

  async send(cards, path, body) {
    this.decided = performance.now();
    this.settle();
    const held = document.activeElement;
    const goesOn = cards.some((card) => card.contains(held));
    const failed = await Promise.all(cards.map((card) => this.sendOne(card, path(card), body)));
    this.complain(failed.find(Boolean) ?? null);
    if (goesOn) this.goOn(held);
  }

  // What had the focus is switched off, or gone with its card: whoever works by keyboard is led on.
  goOn(held) {
    const { activeElement } = document;
    if (activeElement !== held && activeElement !== document.body) return; // they are somewhere else already
    const wasNotSent = held.isConnected && held.matches(":enabled");
    const next = this.waiting.find((card) => card.querySelector(":is(button, input):enabled"));
    if (next) next.tabIndex = -1;
    (wasNotSent ? held : (next ?? this.rest()))?.focus();
  }

  async sendOne(card, path, body) {
    const controls = card.querySelectorAll("button, input");
    controls.forEach((each) => (each.disabled = true));
    try {
      await call("POST", path, body);
    } catch (error) {
      if (wasQuicker(error)) return null; // the stream brings what somebody else decided
      controls.forEach((each) => (each.disabled = false));
      if (error.isAway) error.message = words.unanswered;
      return error;
    }
    return null;
  }
}

// What is too old to be allowed late is told as expired: of that no more will come.
function wasQuicker({ code, details }) {
  return code === "already_decided" && details?.status !== "expired";
}

// Nothing lies over that point of it, and it is not scrolled away.
function inSight(card, part, at = 0.5) {
  const { left, top, width, height } = part.getBoundingClientRect();
  const seen = document.elementFromPoint(left + width * at, top + height * at);
  return Boolean(seen) && card.contains(seen);
}

function isAlike(one, next) {
  const [before, after] = [one, next].map((card) => card.closest(".asked") ?? card);
  return Boolean(one.dataset.alike) && one.dataset.alike === next.dataset.alike && before.nextElementSibling === after;
}

function draw(card, run) {
  card.dataset.part = run.length === 1 ? "" : card === run.at(-1) ? "last" : card === run[0] ? "first" : "inner";
  for (const label of card.querySelectorAll("[data-all]")) {
    label.dataset.one ??= label.textContent;
    const words = run.length === 1 ? label.dataset.one : label.dataset.all.replace("{n}", run.length);
    if (label.textContent !== words) label.textContent = words; // who watches for changes is not told of none
  }
}

function isWhole(card) {
  return inSight(card, card, 0.02) && inSight(card, card, 0.98);
}

function reasonOf(part) {
  return part.querySelector("[data-reason] input");
}

function opensReason(part) {
  return part.open && reasonOf(part);
}

function chosen(set) {
  const other = set.querySelector("[name=other]").value.trim();
  const labels = [...set.querySelectorAll(":checked")].map((each) => each.value);
  if (other) labels.push(other);
  return labels.length > 1 ? labels : (labels[0] ?? "");
}
