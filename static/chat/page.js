// The page of one chat: puts its parts together.

import { About } from "./about.js";
import { Allowed } from "./allowed.js";
import { showAsked } from "./asked.js";
import { Asks } from "./asks.js";
import { Composer } from "./composer.js";
import { copying } from "./copying.js";
import { Curator } from "./curator.js";
import { forgetAll } from "./drafts.js";
import { Earlier } from "./earlier.js";
import { words } from "./html.js";
import { keys } from "./keys.js";
import { Log } from "./log.js";
import { options } from "./options.js";
import { Parts } from "./parts.js";
import { badge, Rail } from "./rail.js";
import { remedies } from "./remedies.js";
import { Scroll } from "./scroll.js";
import { Stream } from "./stream.js";

const main = document.querySelector("main");
const talk = document.querySelector("#talk");
const column = document.querySelector("#log");
const children = document.querySelector("#children");
const state = document.querySelector("#state");
const trouble = document.querySelector("#trouble");
const start = Number(main.dataset.after);
let session = main.dataset.session;

const log = new Log(column);
const scroll = new Scroll(talk, column, document.querySelector("#jump"));
const rail = new Rail(complain);
const about = new About({ session, complain });
new Allowed({ about, complain });
const curator = new Curator({ about, complain });
const composer = new Composer({ session, complain, began, log, said: () => scroll.toEnd() });
if (composer.form) new Asks(talk, { complain, rest }); // who may only read decides nothing
const stream = new Stream({ heard, changed: moved, gone });
const parts = new Parts(stream);

// In the message, but for who would get a keyboard over what they read.
function rest() {
  return matchMedia("(pointer: coarse)").matches ? talk : composer.field;
}

function complain(error) {
  trouble.hidden = !error;
  trouble.textContent = error ? error.message : "";
  trouble.toggleAttribute("data-away", Boolean(error?.isAway));
}

// Once the server is back, nobody needs to read that it was away.
function moved() {
  if (!stream.isAway && "away" in trouble.dataset) complain(null);
  parts.follow();
  show();
}

// The chat was deleted, or this person is no member any more.
function gone() {
  stream.follow("", () => 0);
  log.endAll();
  helpers({ items: [], isAll: true });
  composer.lock();
  about.more.hidden = true;
  complain(new Error(words.gone));
  show();
}

function heard(said) {
  if (said.type === "told") said.told.forEach(take);
  else if (said.type === "grown") log.grow(said);
  else if (said.type === "thinking") log.think(said);
  else if (said.type === "list") rail.take(said.html);
  else if (said.type === "children" && said.sessionId === session) helpers(said);
  else if (said.type === "inbox") waiting(said.count);
  else if (said.type === "part") parts.take(said);
  else if (said.type === "refused" && said.sessionId === session) gone();
  else if (said.type === "refused") complain(said.error);
  show();
}

// What those ask that this chat has started.
function helpers(said) {
  showAsked(children, said);
  children.hidden = !children.childElementCount;
}

function waiting(count) {
  badge(count);
  about.tell(count);
}

function take(row) {
  if (row.type === "session_updated") {
    about.changed(row);
    curator.changed(row);
  }
  log.take(row);
  if (row.type === "child_spawned") parts.begin(document.querySelector("#family"), "family");
}

// Whether a person is needed: this one, or somebody who may answer.
function asked() {
  const cards = [...log.asks, ...children.querySelectorAll(".ask")];
  const isOurs = ({ dataset }) => composer.form && !("operators" in dataset);
  return cards.some(isOurs) ? "needs" : cards.length ? "asks" : "";
}

function show() {
  const word = stream.isAway ? "away" : asked() || (log.reason ? "waiting" : log.isWorking ? "working" : "idle");
  state.querySelector(".dot").className = `dot ${{ needs: "need", asks: "live", working: "live", waiting: "live" }[word] ?? ""}`;
  if (state.querySelector(".word").textContent !== state.dataset[word]) {
    state.querySelector(".word").textContent = state.dataset[word];
  }
  main.classList.toggle("away", stream.isAway);
  log.mark();
  composer.show();
}

function began(id, text) {
  session = id;
  history.replaceState(null, "", `/chat/${id}`);
  document.querySelector("#empty")?.remove();
  about.begin(id, text.trim().split("\n")[0].trim().slice(0, 60) || words.newChat);
  document.querySelector("#family").dataset.of = `- ${id}`;
  rail.show(id);
  stream.follow(id, () => log.from(0));
}

copying(column);
remedies(column, composer);
options(column, complain);
keys({ rail, composer, about });
document.querySelector(".me").addEventListener("submit", forgetAll);
column.addEventListener("click", ({ target }) => {
  const chip = target.closest("[data-says]");
  if (chip) composer.try(chip.dataset.says, chip.dataset.agent);
  const fold = target.closest("summary")?.parentElement;
  if (fold) fold.dataset.touched = "yes"; // what a person opened or closed stays so
});
if (session) {
  new Earlier(column, scroll, complain);
  rail.show(session);
  stream.follow(session, () => log.from(start));
}
stream.open();
show();
main.dataset.ready = ""; // until here there was nobody to take what is said
