// The chat itself: its title, archive and end. What others change comes with the stream.

import { call } from "./api.js";
import { asking } from "./asking.js";
import { words } from "./html.js";

export class About {
  constructor({ session, complain }) {
    this.session = session;
    this.complain = complain;
    this.title = document.querySelector("#title bdi");
    this.more = document.querySelector("#more");
    this.on("#rename", () => this.rename());
    this.on("#archive", async () => {
      await call("POST", `/api/chat/${this.session}/archive`, {});
      location.assign("/");
    });
    this.on("#delete", () => this.delete());
    document.addEventListener("click", ({ target }) => this.more.contains(target) || (this.more.open = false));
  }

  on(name, act) {
    document.querySelector(name).addEventListener("click", async () => {
      this.more.open = false;
      await act().catch(this.complain);
    });
  }

  begin(session, title) {
    this.session = session;
    this.more.hidden = false;
    this.named(title);
  }

  named(title) {
    this.title.textContent = title;
    document.title = `${title} · Parachute`;
  }

  async rename() {
    const title = await asking({ title: words.rename, yes: words.renameYes, value: this.title.textContent });
    if (title) await call("PATCH", `/api/chat/${this.session}`, { title });
  }

  async delete() {
    const yes = await asking({ title: words.delete, text: words.deleteText, yes: words.deleteYes, danger: true });
    if (!yes) return;
    await call("DELETE", `/api/chat/${this.session}`);
    location.assign("/");
  }

  changed(fields) {
    if (fields.title) this.named(fields.title);
    for (const [name, field] of Object.entries({ model: "model", trust: "trustLevel" })) {
      const choice = document.querySelector(`#${name}`);
      if (choice && fields[field]) choice.value = choice.dataset.was = fields[field];
    }
  }
}
