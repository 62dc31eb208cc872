// The conversation. The server sends what changed as markup with an id and a place: what is there already is
// replaced, what is new is added. So the same thing may come twice, as it does after a broken connection.

import { element, fragment, icon } from "./html.js";

const WRITES = new Set(["text", "thinking"]);
const TERMINAL = new Set(["done", "aborted", "error", "typed_error"]);
const WAITS = new Set(["session", "user_message", "turn_waiting"]);

export class Log {
  constructor(column) {
    this.column = column;
    this.open = new Map(); // turns that are not over, in order
    this.last = 0;
    for (const section of column.querySelectorAll(".turn[data-status]")) {
      this.open.set(section.dataset.turn, { begun: section.dataset.status !== "queued" });
    }
  }

  get isWorking() {
    return this.open.size > 0;
  }

  // Those that wait behind another.
  get queued() {
    return [...this.open].slice(1).filter(([, turn]) => !turn.begun && turn.brief !== undefined);
  }

  // The cards for which a person is needed now.
  get asks() {
    return this.isWorking ? [...this.column.querySelectorAll('.ask[data-status="pending"]')] : [];
  }

  // What keeps the first one waiting, if anything does.
  get reason() {
    const [first] = this.open.values();
    return first && !first.begun ? first.reason : undefined;
  }

  // What may still change is asked for again from its beginning.
  from(start) {
    const [first] = this.open.keys();
    const opened = first && this.section(first).dataset.opened;
    return opened ? Math.max(opened - 2, 0) : Math.max(this.last, start);
  }

  take(row) {
    this.last = Math.max(this.last, row.seq ?? 0);
    if (row.requestId) return this.show(row); // an answer may come when its turn is over
    if (!row.turnId || this.isOver(row.turnId)) return;
    this.note(row);
    if (WRITES.has(row.type) || row.type === "session" || TERMINAL.has(row.type)) this.live(row.turnId)?.remove();
    this.show(row);
    if (TERMINAL.has(row.type)) this.end(row.turnId);
  }

  show({ turnId, items }) {
    for (const item of items) this.put(turnId, item);
  }

  note(row) {
    const { turnId, type } = row;
    if (TERMINAL.has(type)) return;
    const turn = this.open.get(turnId) ?? { begun: false };
    this.open.set(turnId, turn);
    if (type === "user_message" && turn.brief === undefined) {
      turn.brief = row.brief;
      this.section(turnId).dataset.opened ??= row.seq;
    }
    if (type === "turn_waiting") turn.reason = row.reason;
    if (type === "session" ? row.begins : !WAITS.has(type)) turn.begun = true;
  }

  put(turnId, { id, into, html }) {
    const made = fragment(html).firstElementChild;
    const old = document.getElementById(id);
    if (turnId) this.section(turnId);
    if (!old) return document.getElementById(into)?.append(made);
    if (old.dataset.status === "pending" && made.dataset.status === "pending") return; // somebody may be writing in it
    for (const fold of [old, ...old.querySelectorAll("details")]) {
      const same = fold.id === id ? made : fold.id && made.querySelector(`#${CSS.escape(fold.id)}`);
      if (fold.dataset.touched && same) {
        same.open = fold.open;
        same.dataset.touched = "yes";
      }
    }
    old.replaceWith(made);
  }

  grow({ turnId, more, end, anew }) {
    if (this.isOver(turnId)) return;
    const live = this.liveOf(turnId, "answer", () => [element("div", "settled"), element("div", "end")]);
    const [settled, rest] = live.children;
    if (anew) settled.replaceChildren();
    if (more) settled.append(fragment(more));
    rest.replaceChildren(fragment(end));
  }

  think({ turnId, delta }) {
    if (this.isOver(turnId)) return;
    const live = this.liveOf(turnId, "fold", () => [summary(), element("div", "words")]);
    live.lastElementChild.append(delta);
  }

  // A text grows at the end of its turn until its row comes.
  liveOf(turnId, kind, parts) {
    const old = this.live(turnId);
    if (old?.classList.contains(kind)) return old;
    old?.remove();
    const made = element(kind === "fold" ? "details" : "div", `${kind} live`);
    made.id = `live-${turnId}`;
    made.dir = "auto";
    made.setAttribute("aria-busy", "true");
    made.append(...parts());
    this.section(turnId).append(made);
    return made;
  }

  live(turnId) {
    return document.getElementById(`live-${turnId}`);
  }

  end(turnId) {
    this.open.delete(turnId);
    delete this.section(turnId).dataset.queued;
    this.section(turnId).dataset.over = "";
  }

  // Nothing more will come, and nothing can be answered.
  endAll() {
    this.column.querySelectorAll(".ask:has(.row)").forEach(close);
    for (const turnId of [...this.open.keys()]) {
      this.live(turnId)?.removeAttribute("aria-busy");
      this.end(turnId);
    }
  }

  // Those that wait behind another stand back until it is their turn.
  mark() {
    const queued = new Set(this.queued.map(([turnId]) => turnId));
    for (const turnId of this.open.keys()) this.section(turnId).toggleAttribute("data-queued", queued.has(turnId));
  }

  isOver(turnId) {
    return document.getElementById(`turn-${turnId}`)?.hasAttribute("data-over") ?? false;
  }

  section(turnId) {
    const old = document.getElementById(`turn-${turnId}`);
    if (old) return old;
    const made = element("section", "turn");
    made.id = `turn-${turnId}`;
    made.dataset.turn = turnId;
    this.column.append(made);
    return made;
  }
}

function close(card) {
  card.dataset.status = "over";
  card.classList.add("over");
  card.querySelectorAll(".row, .other, input").forEach((each) => each.remove());
}

function summary() {
  const made = element("summary");
  made.append(icon("fold"), document.querySelector("#words").dataset.thinking);
  return made;
}
