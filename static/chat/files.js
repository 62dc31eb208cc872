// Files to send with the next message: chosen, pasted, or dropped.

import { element, icon, words } from "./html.js";

const LARGEST = 20 * 1024 * 1024;
const LARGEST_TOGETHER = 22 * 1024 * 1024; // a message of 30 MB holds as much
const MOST = 10;

export class Files {
  constructor(list, { complain, changed }) {
    this.list = list;
    this.complain = complain;
    this.changed = changed;
    this.chosen = [];
    const picker = document.querySelector("#picker");
    document.querySelector("#attach").addEventListener("click", () => picker.click());
    picker.addEventListener("change", () => {
      this.add(picker.files);
      picker.value = "";
    });
    document.querySelector("#message").addEventListener("paste", (event) => {
      if (!event.clipboardData.files.length) return;
      event.preventDefault();
      this.add(event.clipboardData.files);
    });
    this.takeDrops(document.body, document.querySelector("main"));
  }

  takeDrops(place, shown) {
    const has = ({ dataTransfer }) => dataTransfer.types.includes("Files");
    const mark = (on) => shown.classList.toggle("drops", on);
    place.addEventListener("dragover", (event) => {
      if (!has(event)) return;
      event.preventDefault();
      mark(true);
    });
    place.addEventListener("dragleave", (event) => place.contains(event.relatedTarget) || mark(false));
    place.addEventListener("drop", (event) => {
      mark(false);
      if (!has(event)) return;
      event.preventDefault();
      this.add(event.dataTransfer.files);
    });
  }

  get size() {
    return this.chosen.reduce((all, file) => all + file.size, 0);
  }

  add(files) {
    this.complain(null);
    for (const file of files) {
      if (file.size > LARGEST) this.complain(new Error(`${file.name} ${words.tooLarge}`));
      else if (file.size === 0) this.complain(new Error(`${file.name} ${words.isEmpty}`));
      else if (this.size + file.size > LARGEST_TOGETHER) this.complain(new Error(`${file.name}: ${words.tooMuch}`));
      else if (this.chosen.length >= MOST) this.complain(new Error(words.tooMany));
      else this.chosen.push(file);
    }
    this.show();
  }

  clear() {
    this.chosen = [];
    this.show();
  }

  show() {
    this.list.replaceChildren(...this.chosen.map((file) => this.row(file)));
    this.changed();
  }

  row(file) {
    const item = element("li", "pill");
    const remove = element("button", "button plain");
    remove.type = "button";
    remove.append(icon("cross"));
    remove.setAttribute("aria-label", `${this.list.dataset.remove}: ${file.name}`);
    remove.addEventListener("click", () => {
      this.chosen = this.chosen.filter((other) => other !== file);
      this.show();
      document.querySelector("#message").focus();
    });
    item.append(icon("clip"), element("bdi", "", file.name), remove);
    return item;
  }

  async payload() {
    return Promise.all(
      this.chosen.map(async (file) => ({
        fileName: file.name || "file",
        mimeType: file.type || "application/octet-stream",
        base64Data: await base64(file),
      })),
    );
  }
}

export function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(new Error(`${file.name}: ${reader.error.message}`));
    reader.readAsDataURL(file);
  });
}
