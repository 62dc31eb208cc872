// The page of one session: what was said, what is being said, and a way to say more.
// Text from agents and people is only ever set as text, never as markup.

import { call } from "./api.js";
import { Conversation } from "./conversation.js";
import { Rail } from "./rail.js";
import { Stream } from "./stream.js";

const main = document.querySelector("main");
const form = document.querySelector("#say");
const message = document.querySelector("#message");
const send = document.querySelector("#send");
const stop = document.querySelector("#stop");
const state = document.querySelector("#state");
const trouble = document.querySelector("#trouble");
const conversation = new Conversation(document.querySelector("#log"), document.querySelector(".talk"));
const rail = new Rail();
const stream = new Stream(heard, show, complain);
let session = main.dataset.session;

function show() {
  const working = conversation.isWorking;
  const word = working ? "working" : "idle";
  state.querySelector(".dot").classList.toggle("live", working);
  state.querySelector(".word").textContent = stream.isAway ? "reconnecting" : word;
  stop.hidden = !working;
  rail.work(working, word);
}

function complain(error) {
  trouble.hidden = !error;
  trouble.textContent = error ? error.message : "";
}

function heard(event) {
  if (event.type === "refused") return complain(event.error);
  conversation.take(event);
  show();
}

async function open(id) {
  const found = await call("GET", `/api/chat/${id}`);
  for (const said of found.messages) conversation.remember(said);
  for (const turn of found.pendingTurns) conversation.open.add(turn.turnId);
  stream.follow(id, found.replayFrom);
  show();
}

function begin(accepted, text) {
  session = accepted.sessionId;
  const title = text.trim().split("\n")[0].trim().slice(0, 60);
  history.replaceState(null, "", `/chat/${session}`);
  document.title = `${title} · Parachute`;
  document.querySelector("h1").textContent = title;
  document.querySelector("#log .empty")?.remove();
  rail.add(`/chat/${session}`, title);
  stream.follow(session, 0);
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = message.value;
  if (!text.trim() || send.disabled) return;
  send.disabled = true;
  try {
    const accepted = await call("POST", "/api/chat", { message: text, sessionId: session || null });
    message.value = "";
    complain(null);
    if (!session) begin(accepted, text);
  } catch (error) {
    complain(error);
  } finally {
    send.disabled = false;
    message.focus();
  }
});

message.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit();
});

stop.addEventListener("click", () => {
  call("POST", `/api/chat/${session}/abort`, {}).catch((error) => conversation.isWorking && complain(error));
});

if (session) open(session).catch(complain);
send.disabled = false; // until here there was nobody to take what is sent
