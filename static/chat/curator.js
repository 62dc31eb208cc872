// The curator of this chat: a chip that says what it did last, and a dialog with its last runs.

import { call, markup } from "./api.js";
import { fragment } from "./html.js";

const WORDS = { update_title: "title", update_summary: "summary", log_activity: "log" };

export class Curator {
  constructor({ about, complain }) {
    this.about = about;
    this.complain = complain;
    this.chip = document.querySelector("#curator");
    this.dialog = document.querySelector("#curator-runs");
    this.chip.addEventListener("click", () => this.open().catch(complain));
    about.on("#curates", () => this.open());
    this.dialog.addEventListener("click", ({ target }) => this.act(target.closest("button")?.dataset ?? {}));
    if (this.chip.dataset.run) this.show(JSON.parse(this.chip.dataset.run));
  }

  changed({ curatorLastRun }) {
    if (!curatorLastRun) return;
    this.show(curatorLastRun);
    if (this.dialog.open) this.load().catch(this.complain);
  }

  show({ actions, status, error }) {
    const { dataset } = this.chip;
    const did = actions.map((action) => dataset[WORDS[action]]).filter(Boolean);
    const isBad = status === "failed";
    this.chip.querySelector(".word").textContent = isBad ? dataset.failed : did.join(" · ") || dataset.nothing;
    this.chip.classList.toggle("bad", isBad || Boolean(error));
    this.chip.hidden = false;
  }

  async open() {
    await this.load();
    this.dialog.showModal();
  }

  async load() {
    this.dialog.replaceChildren(fragment(await markup(`/chat/${this.about.session}/curator`)));
    for (const time of this.dialog.querySelectorAll("time")) time.textContent = new Date(time.dateTime).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  }

  // The end of a run is told by the stream; that one waits is known here.
  async act({ trigger, undo, close }) {
    if (close !== undefined) this.dialog.close();
    const path = trigger !== undefined ? "trigger" : undo && `runs/${undo}/undo`;
    if (!path) return;
    try {
      await call("POST", `/api/chat/${this.about.session}/curator/${path}`);
      await this.load();
    } catch (error) {
      this.complains(error);
    }
    this.dialog.querySelector("[data-close]").focus();
  }

  complains(error) {
    const trouble = this.dialog.querySelector(".trouble");
    trouble.hidden = false;
    trouble.textContent = error.message;
  }
}
