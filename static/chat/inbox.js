// The page of all that waits for a person, over all chats.

import { Asks } from "./asks.js";
import { fragment } from "./html.js";
import { badge, Rail } from "./rail.js";
import { Stream } from "./stream.js";

const asked = document.querySelector("#asked");
const nothing = document.querySelector("#nothing");
const trouble = document.querySelector("#trouble");
const title = document.title;

const rail = new Rail(complain);
new Asks(asked, { complain });
const stream = new Stream({ heard, changed: () => {}, gone: () => {} });

function complain(error) {
  trouble.hidden = !error;
  trouble.textContent = error ? error.message : "";
}

function heard(said) {
  if (said.type === "list") rail.take(said.html);
  else if (said.type === "refused") complain(said.error);
  else if (said.type === "inbox") show(said);
}

// All of it at first, and again whenever the connection was lost: what is not among it is over.
function show({ items, isAll, count }) {
  if (isAll) {
    const known = new Set(items.map(({ id }) => id));
    for (const old of [...asked.children]) if (!known.has(old.id)) old.remove();
  }
  for (const { id, html } of items) {
    const old = document.getElementById(id);
    if (!html) old?.remove();
    else if (!old) asked.append(fragment(html));
  }
  nothing.hidden = count > 0;
  badge(count);
  document.title = count ? `(${count}) ${title}` : title;
}

stream.open();
document.querySelector("main").dataset.ready = "";
