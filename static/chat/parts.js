// Parts of a page that change by themselves: each says what it is, and is told anew when it is another than it was.

import { csrf } from "./api.js";
import { clock } from "./clock.js";
import { element, fragment } from "./html.js";

export class Parts {
  constructor(stream) {
    this.stream = stream;
  }

  follow() {
    if (this.stream.isAway) return;
    for (const part of document.querySelectorAll("[data-live]")) this.ask(part);
  }

  // One that was no part until now.
  begin(place, name) {
    if (place.dataset.live) return;
    place.dataset.live = name;
    this.ask(place);
  }

  ask({ dataset }) {
    this.stream.say({ type: "follow", part: dataset.live, of: dataset.of ?? "" });
  }

  // Under nobody's hands: who types there, or has opened something, keeps it.
  take({ part, of, html }) {
    const place = [...document.querySelectorAll("[data-live]")].find(
      ({ dataset }) => dataset.live === part && (dataset.of ?? "") === of,
    );
    if (!place || place.querySelector("textarea:focus, input:focus, select:focus, .why :focus")) return;
    const held = place.contains(document.activeElement) && document.activeElement.id;
    const was = new Map(named(place).map(([name, each]) => [name, each.open]));
    place.replaceChildren(fragment(html));
    for (const [name, each] of named(place)) each.open = was.get(name) ?? each.open;
    place.querySelectorAll("form[method=post]").forEach(arm);
    clock(place);
    if (held) document.getElementById(held)?.focus();
  }
}

// What unfolds there: one with a name of its own is the same wherever it stands now.
function named(place) {
  return [...place.querySelectorAll("details")].map((each, at) => [each.id || at, each]);
}

// What was drawn for nobody's request has no token of this browser in its forms.
function arm(form) {
  if (form.querySelector("[name=csrfmiddlewaretoken]")) return;
  const token = element("input");
  Object.assign(token, { type: "hidden", name: "csrfmiddlewaretoken", value: csrf() });
  form.append(token);
}
