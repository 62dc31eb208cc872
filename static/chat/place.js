// A page beside the chat: the rail works as everywhere, and what changes by itself is replaced when it has.

import { csrf } from "./api.js";
import { element, fragment } from "./html.js";
import { badge, Rail } from "./rail.js";
import { Stream } from "./stream.js";

const trouble = document.querySelector("#trouble");
const rail = new Rail(complain);
const stream = new Stream({ heard, changed: follow, gone: () => {} });

function complain(error) {
  trouble.hidden = !error;
  trouble.textContent = error ? error.message : "";
}

// Parts of the page that say what they are: each is told anew when it is another than it was.
function follow() {
  if (stream.isAway) return;
  for (const part of document.querySelectorAll("[data-live]")) {
    stream.say({ type: "follow", part: part.dataset.live, of: part.dataset.of ?? "" });
  }
}

function heard(said) {
  if (said.type === "list") rail.take(said.html);
  else if (said.type === "inbox") badge(said.count);
  else if (said.type === "part") replace(said);
  else if (said.type === "refused") complain(said.error);
}

// Under nobody's hands: who types there, or has opened something, keeps it.
function replace({ part, of, html }) {
  const place = [...document.querySelectorAll("[data-live]")].find(
    ({ dataset }) => dataset.live === part && (dataset.of ?? "") === of,
  );
  if (!place || place.querySelector("textarea:focus, input:focus, select:focus")) return;
  const held = place.contains(document.activeElement) && document.activeElement.id;
  place.replaceChildren(fragment(html));
  place.querySelectorAll("form[method=post]").forEach(arm);
  if (held) document.getElementById(held)?.focus();
}

// What was drawn for nobody's request has no token of this browser in its forms.
function arm(form) {
  if (form.querySelector("[name=csrfmiddlewaretoken]")) return;
  const token = element("input");
  Object.assign(token, { type: "hidden", name: "csrfmiddlewaretoken", value: csrf() });
  form.append(token);
}

stream.open();
document.querySelector("main").dataset.ready = "";
