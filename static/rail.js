// The list of chats: on a narrow screen it opens and closes, and a new chat appears in it by itself.

export class Rail {
  constructor() {
    this.list = document.querySelector("#chats");
    this.menu = document.querySelector("#menu");
    this.menu.addEventListener("click", () => this.open(!this.isOpen()));
    document.querySelector("main").addEventListener("click", (event) => {
      if (!this.menu.contains(event.target)) this.open(false);
    });
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.isOpen()) return;
      this.open(false);
      this.menu.focus();
    });
  }

  isOpen() {
    return document.body.classList.contains("open");
  }

  open(wanted) {
    document.body.classList.toggle("open", wanted);
    this.menu.setAttribute("aria-expanded", String(wanted));
  }

  add(address, title) {
    const link = document.createElement("a");
    link.href = address;
    link.setAttribute("aria-current", "page");
    link.append(span("t", title));
    const item = document.createElement("li");
    item.append(link);
    this.list.querySelector(".empty")?.remove();
    this.list.prepend(item);
  }

  work(working, word) {
    const link = this.list.querySelector("[aria-current]");
    link?.querySelector(".dot")?.remove();
    if (!link || !working) return;
    const dot = span("dot live", "");
    dot.title = word;
    link.append(dot);
  }
}

function span(kind, text) {
  const element = document.createElement("span");
  element.className = kind;
  element.textContent = text;
  return element;
}
