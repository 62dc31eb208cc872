// The tags of a chat, in its menu: put on and taken off.

import { call } from "./api.js";
import { element, icon, visible } from "./html.js";

export class Tags {
  constructor({ about, complain }) {
    this.about = about;
    this.box = document.querySelector("#tags");
    this.list = this.box.querySelector("ul");
    const field = this.box.querySelector("input");
    about.more.addEventListener("toggle", () => about.more.open && this.load().catch(complain));
    this.list.addEventListener("click", ({ target }) => {
      const button = target.closest("button");
      if (button) this.takeOff(button.dataset.tag).catch(complain);
    });
    this.box.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      const tag = field.value.trim();
      field.value = "";
      if (tag) this.put(tag).catch(complain);
    });
  }

  get path() {
    return `/api/chat/${this.about.session}/tags`;
  }

  async load() {
    this.show((await call("GET", this.path)).tags);
  }

  async put(tag) {
    this.show((await call("POST", this.path, { tag })).tags);
  }

  async takeOff(tag) {
    this.show((await call("DELETE", `${this.path}/${encodeURIComponent(tag)}`)).tags);
    (this.list.querySelector("button") ?? this.box.querySelector("input")).focus();
  }

  changed({ tags }) {
    if (tags) this.show(tags);
  }

  show(tags) {
    this.list.replaceChildren(...tags.map((tag) => this.item(tag)));
  }

  item(tag) {
    const made = element("li");
    const remove = element("button", "button plain");
    remove.type = "button";
    remove.dataset.tag = tag;
    remove.setAttribute("aria-label", `${this.box.dataset.remove} ${visible(tag)}`);
    remove.append(icon("cross"));
    made.append(element("span", "faint", "#"), element("span", "", visible(tag)), remove);
    return made;
  }
}
