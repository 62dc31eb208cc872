// The page of all that waits for a person, over all chats.

import { showAsked } from "./asked.js";
import { Asks } from "./asks.js";
import { badge, Rail } from "./rail.js";
import { Stream } from "./stream.js";

const asked = document.querySelector("#asked");
const nothing = document.querySelector("#nothing");
const trouble = document.querySelector("#trouble");
const title = document.title;

const rail = new Rail(complain);
new Asks(asked, { complain, rest: () => document.querySelector("#talk") });
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

function show(said) {
  showAsked(asked, said);
  const { count } = said;
  nothing.hidden = count > 0;
  badge(count);
  document.title = count ? `(${count}) ${title}` : title;
}

stream.open();
document.querySelector("main").dataset.ready = "";
