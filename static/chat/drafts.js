// What was written and not sent, kept in this browser until it is.

export class Draft {
  constructor(field, session) {
    this.field = field;
    this.session = session;
    if (!field.value) field.value = read(this.key);
    field.addEventListener("input", () => this.keep());
    addEventListener("storage", ({ key, oldValue, newValue }) => {
      if (key === this.key && field.value === oldValue) field.value = newValue ?? ""; // sent, or gone on with, in another tab
    });
  }

  get key() {
    return `draft:${this.session || "new"}`;
  }

  keep() {
    write(this.key, this.field.value);
  }

  // A new chat has got its name: what is written there meanwhile belongs to it.
  move(session) {
    write(this.key, "");
    this.session = session;
    this.keep();
  }
}

export function forgetAll() {
  try {
    for (const key of Object.keys(localStorage)) if (key.startsWith("draft:")) localStorage.removeItem(key);
  } catch {
    // a browser that keeps nothing has nothing to forget
  }
}

function read(key) {
  try {
    return localStorage.getItem(key) ?? "";
  } catch {
    return ""; // a browser may forbid it; then nothing is kept
  }
}

function write(key, text) {
  try {
    if (text) localStorage.setItem(key, text);
    else localStorage.removeItem(key);
  } catch {
    // full, or forbidden: the text is still in the field
  }
}
