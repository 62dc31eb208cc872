// Where a person is needed: the answers, and the time that is left.

import { call } from "./api.js";

const BEAT = 20_000; // ms: while somebody looks at a card, its clock stands

export class Asks {
  constructor(place, { complain }) {
    this.place = place;
    this.complain = complain;
    place.addEventListener("click", ({ target }) => this.clicked(target.closest("button[data-answer]")));
    place.addEventListener("change", ({ target }) => target.matches("select[data-answer]") && this.more(target));
    place.addEventListener("input", ({ target }) => this.chose(target.closest("[data-questions]")));
    place.addEventListener("submit", (event) => this.answer(event));
    document.addEventListener("keydown", (event) => this.pressed(event));
    new MutationObserver(() => this.look()).observe(place, { childList: true, subtree: true });
    setInterval(() => this.tick(), 1000);
    setInterval(() => this.beat(), BEAT);
    this.look();
  }

  get waiting() {
    return [...this.place.querySelectorAll('.ask[data-status="pending"]')];
  }

  look() {
    const count = this.waiting.length;
    if (count === this.count) return;
    if (count > (this.count ?? 0)) this.beat();
    this.count = count;
    this.tick();
  }

  tick() {
    for (const until of this.place.querySelectorAll("[data-until]")) {
      const left = Math.max(0, Math.ceil((Date.parse(until.dataset.until) - Date.now()) / 1000));
      const clock = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
      until.textContent = until.dataset.until ? `${until.dataset.says} ${clock}` : "";
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

  async opened(card) {
    try {
      const { expiresAt } = await call("POST", `/api/permissions/${card.dataset.request}/open`, {});
      const until = card.querySelector("[data-until]");
      if (until && expiresAt) until.dataset.until = expiresAt;
    } catch {
      // it was answered meanwhile, and the stream says so; or nobody is there, and the page says that
    }
  }

  clicked(button) {
    if (button) this.decide(button.closest(".ask"), button.dataset.answer, {});
  }

  more(select) {
    const [option] = select.selectedOptions;
    if (option?.value) this.decide(select.closest(".ask"), "grant", { scope: option.dataset.scope, pattern: option.value });
  }

  // Y and N for the first that waits, as long as nobody is writing.
  pressed(event) {
    const answer = { y: "grant", n: "deny" }[event.key.toLowerCase()];
    if (!answer || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    const card = event.target.closest('.ask[data-status="pending"]') ?? this.waiting.find((each) => !each.querySelector("form"));
    if (card) this.decide(card, answer, {});
  }

  // To say nothing is no answer.
  chose(form) {
    if (form) form.querySelector(".row button").disabled = ![...form.querySelectorAll("fieldset")].some((set) => chosen(set).length);
  }

  answer(event) {
    const form = event.target.closest("[data-questions]");
    if (!form) return;
    event.preventDefault();
    const answers = Object.fromEntries([...form.querySelectorAll("fieldset")].map((set) => [set.dataset.question, chosen(set)]));
    const card = form.closest(".ask");
    this.send(card, `/api/chat/${card.dataset.session}/answer`, { requestId: card.dataset.request, answers });
  }

  decide(card, answer, how) {
    this.send(card, `/api/permissions/${card.dataset.request}/${answer}`, how);
  }

  async send(card, path, body) {
    const controls = card.querySelectorAll("button, select, input");
    controls.forEach((each) => (each.disabled = true));
    try {
      await call("POST", path, body);
      this.complain(null);
    } catch (error) {
      controls.forEach((each) => (each.disabled = false));
      this.complain(error);
    }
  }
}

function chosen(set) {
  const other = set.querySelector("[name=other]").value.trim();
  const labels = [...set.querySelectorAll(":checked")].map((each) => each.value);
  if (other) labels.push(other);
  return labels.length > 1 ? labels : (labels[0] ?? "");
}
