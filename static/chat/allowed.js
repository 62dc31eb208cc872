// What people have allowed this chat beyond what it may do anyway, in its menu. Each can be taken back.

import { call } from "./api.js";
import { element, icon, visible } from "./html.js";

export class Allowed {
  constructor({ about, complain }) {
    this.about = about;
    this.complain = complain;
    this.box = document.querySelector("#allowed");
    this.list = this.box.querySelector("ul");
    about.more.addEventListener("toggle", () => about.more.open && this.load().catch(complain));
    this.list.addEventListener("click", ({ target }) => {
      const button = target.closest("button");
      if (button) this.takeBack(button.dataset).catch(complain);
    });
  }

  async load() {
    this.show(await this.permissions());
  }

  async permissions() {
    return (await call("GET", `/api/chat/${this.about.session}/permissions`)).permissions;
  }

  // What is no list names nothing: that is how it is from the start.
  show(permissions) {
    const named = ["read", "write", "bash"].filter((kind) => Array.isArray(permissions[kind]));
    const patterns = named.flatMap((kind) => permissions[kind].map((pattern) => this.item(kind, pattern)));
    this.list.replaceChildren(...patterns);
    this.box.hidden = !patterns.length;
  }

  item(kind, pattern) {
    const made = element("li");
    const name = element("code", "", visible(pattern));
    const remove = element("button", "button plain");
    remove.type = "button";
    Object.assign(remove.dataset, { kind, pattern });
    remove.setAttribute("aria-label", `${this.box.dataset.takeBack} ${visible(pattern)}`);
    remove.append(icon("cross"));
    made.append(element("span", "faint", this.box.dataset[kind]), name, remove);
    return made;
  }

  // Out of the list as it is now: what is sent replaces all of it, and more may have been allowed since it was shown.
  async takeBack({ kind, pattern }) {
    const left = (await this.permissions())[kind].filter((each) => each !== pattern);
    await call("PATCH", `/api/chat/${this.about.session}`, { metadata: { permissions: { [kind]: left } } });
    await this.load();
    (this.list.querySelector("button") ?? this.about.more.querySelector("summary")).focus();
  }
}
