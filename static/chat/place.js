// A page beside the chat: the rail works as everywhere, and what changes by itself is replaced when it has.

import { Parts } from "./parts.js";
import { badge, Rail } from "./rail.js";
import { Stream } from "./stream.js";

const trouble = document.querySelector("#trouble");
const rail = new Rail(complain);
const stream = new Stream({ heard, changed: () => parts.follow(), gone: () => {} });
const parts = new Parts(stream);

function complain(error) {
  trouble.hidden = !error;
  trouble.textContent = error ? error.message : "";
}

function heard(said) {
  if (said.type === "list") rail.take(said.html);
  else if (said.type === "inbox") badge(said.count);
  else if (said.type === "part") parts.take(said);
  else if (said.type === "refused") complain(said.error);
}

stream.open();
document.querySelector("main").dataset.ready = "";
