// What was said earlier comes when somebody scrolls up to it, or asks for it.

import { markup } from "./api.js";
import { fragment } from "./html.js";

export class Earlier {
  constructor(column, scroll, complain) {
    this.column = column;
    this.scroll = scroll;
    this.complain = complain;
    this.seen = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && this.load(), {
      root: scroll.talk,
      rootMargin: "400px 0px 0px",
    });
    column.addEventListener("click", ({ target }) => target === this.button && this.load());
    this.watch();
  }

  get button() {
    return this.column.querySelector(".earlier");
  }

  watch() {
    if (this.button) this.seen.observe(this.button);
  }

  async load() {
    const { button } = this;
    if (!button || button.disabled) return;
    button.disabled = true;
    try {
      const found = fragment(await markup(`${location.pathname}/earlier?before=${button.dataset.before}`));
      const anchor = this.column.querySelector(".turn");
      this.scroll.keeping(anchor, () => button.replaceWith(found));
      this.watch();
    } catch (error) {
      button.disabled = false;
      this.complain(error);
    }
  }
}
