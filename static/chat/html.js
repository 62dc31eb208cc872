// The one place where markup becomes elements. All of it comes from our own server, which has cleaned it.

const policy = window.trustedTypes?.createPolicy("server", { createHTML: (markup) => markup });

export function fragment(markup) {
  const template = document.createElement("template");
  template.innerHTML = policy ? policy.createHTML(markup) : markup;
  return template.content;
}

export function element(name, kind, text = "") {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  made.textContent = text;
  return made;
}

export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#i-${name}`);
  svg.setAttribute("aria-hidden", "true");
  svg.append(use);
  return svg;
}

// The words of the page, which the server has put into its language.
export const words = document.querySelector("#words").dataset;

// As the server does it: what turns the order of text around is shown by name.
export function visible(text) {
  return text.replace(/[\u202a-\u202e\u2066-\u2069]/g, (found) => `\ufffdU+${found.codePointAt(0).toString(16).toUpperCase()}`);
}
