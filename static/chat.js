// The page of one session: what was said, what is being said, and a way to say more.
// Text from agents and people is only ever set as text, never as markup.

import { Conversation } from "./conversation.js";
import { Stream } from "./stream.js";

const main = document.querySelector("main");
const form = document.querySelector("#say");
const message = document.querySelector("#message");
const send = document.querySelector("#send");
const stop = document.querySelector("#stop");
const trouble = document.querySelector("#trouble");
const token = form.querySelector("[name=csrfmiddlewaretoken]").value;
const conversation = new Conversation(document.querySelector("#log"), document.querySelector(".talk"));
let session = main.dataset.session;

async function call(method, path, body) {
  const headers = { "X-CSRFToken": token, "Content-Type": "application/json", Prefer: "respond-async" };
  const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error.message);
  return found;
}

function show(working, word) {
  const state = document.querySelector("#state");
  state.querySelector(".dot").classList.toggle("live", working);
  state.querySelector(".word").textContent = word;
  stop.hidden = !working;
}

function complain(error) {
  trouble.hidden = !error;
  trouble.textContent = error ? error.message : "";
}

function heard(event) {
  conversation.take(event);
  if (event.type === "user_message" || event.type === "session") show(true, "working");
  if (["done", "aborted", "error", "typed_error"].includes(event.type)) show(conversation.waiting > 0, conversation.waiting > 0 ? "working" : "idle");
}

const stream = new Stream(heard, (connected) => !connected && show(!stop.hidden, "reconnecting"));

async function open(id) {
  const found = await call("GET", `/api/chat/${id}`);
  for (const said of found.messages) conversation.remember(said);
  show(found.pendingTurns.length > 0, found.pendingTurns.length > 0 ? "working" : "idle");
  stream.follow(id, found.replayFrom);
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
    if (!session) {
      session = accepted.sessionId;
      history.pushState(null, "", `/chat/${session}`);
      document.querySelector("h1").textContent = text.trim().split("\n")[0].slice(0, 60);
      stream.follow(session, 0);
    }
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

stop.addEventListener("click", () => call("POST", `/api/chat/${session}/abort`, {}).catch(complain));

if (session) open(session).catch(complain);
