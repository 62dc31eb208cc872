// Says things: a message, one that waits, one into the turn that runs; and stops what runs.

import { call } from "./api.js";
import { Casting } from "./casting.js";
import { Draft } from "./drafts.js";
import { base64, Files } from "./files.js";
import { element, icon, words } from "./html.js";

export class Composer {
  constructor({ session, complain, began, said, log }) {
    this.session = session;
    this.complain = complain;
    this.began = began;
    this.said = said;
    this.log = log;
    this.form = document.querySelector("#say");
    if (!this.form) return; // who may only read has none
    this.field = this.form.querySelector("#message");
    this.send = this.form.querySelector("#send");
    this.steer = this.form.querySelector("#steer");
    this.stop = this.form.querySelector("#stop");
    this.queue = document.querySelector("#queue");
    this.draft = new Draft(this.field, session);
    this.files = new Files(this.form.querySelector("#files"), { complain, changed: () => this.changed() });
    this.key = key();
    this.isSending = false;
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.say();
    });
    this.steer.addEventListener("click", () => this.sayNow());
    this.stop.addEventListener("click", () => this.abort());
    this.field.addEventListener("input", () => this.changed());
    this.field.addEventListener("keydown", (event) => this.pressed(event));
    this.casting = new Casting(this.form);
    for (const name of ["model", "trust"]) {
      const choice = this.choice(name);
      choice.dataset.was = choice.value;
      choice.addEventListener("change", () => this.chose(name, choice));
    }
    this.isReady = true;
    this.show();
  }

  choice(name) {
    return this.form.querySelector(`#${name}`);
  }

  pressed(event) {
    if (event.isComposing) return;
    if (event.key === "Escape" && this.log.isWorking) this.abort();
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) this.sayNow();
    else this.say();
  }

  get isEmpty() {
    return !this.field.value.trim() && !this.files.chosen.length;
  }

  // What is sent next is another message than the one that may have got lost.
  changed() {
    this.key = key();
    this.show();
  }

  async say() {
    if (this.isSending || this.isEmpty) return;
    const sent = this.field.value;
    await this.sending(async () => {
      const attachments = await this.files.payload();
      await this.post(sent, this.key, attachments.length ? { attachments } : {});
      this.files.clear();
      this.wasSent(sent);
    });
  }

  // With the running turn, while it still works. Files wait for a message of their own.
  async sayNow() {
    if (this.steer.hidden) return this.say();
    const sent = this.field.value;
    if (this.isSending || !sent.trim()) return;
    await this.sending(async () => {
      await call("POST", `/api/chat/${this.session}/inject`, { message: sent });
      this.wasSent(sent);
    });
  }

  // A suggestion, or what was said before: what is being written is left alone.
  async saying(find) {
    if (!this.form || this.isSending) return;
    await this.sending(async () => {
      const { text, ...more } = await find();
      await this.post(text, key(), more);
    });
  }

  // An agent that is not offered here leaves it to the usual one.
  try(text, agent = "") {
    this.casting.offer(agent);
    return this.saying(() => ({ text }));
  }

  again(turnId) {
    return this.saying(() => said(this.session, turnId));
  }

  async post(message, key, more) {
    const order = { message, sessionId: this.session || null, ...(this.session ? {} : this.chosen()), ...more };
    const accepted = await call("POST", "/api/chat", order, { "Idempotency-Key": key });
    if (!this.session) this.begin(accepted.sessionId, message);
  }

  async sending(act) {
    this.isSending = true;
    this.show();
    try {
      await act();
      this.complain(null);
      this.said();
    } catch (error) {
      this.complain(error); // what was written is still there, and its key: sent again, it is said once
    } finally {
      this.isSending = false;
      this.show();
      if (!matchMedia("(pointer: coarse)").matches) this.field.focus();
    }
  }

  begin(session, text) {
    this.session = session;
    this.draft.move(session);
    this.began(session, text);
  }

  chosen() {
    const workspace = this.form.querySelector("#workspace")?.value;
    const trustLevel = this.choice("trust").value;
    const priorConversation = this.form.querySelector("#prior")?.content.textContent;
    return {
      ...this.casting.chosen(),
      ...(trustLevel && { trustLevel }),
      ...(workspace && { workspace }),
      ...(priorConversation && { priorConversation }),
    };
  }

  // In a chat that is there, a choice counts from the next message on.
  async chose(name, choice) {
    this.changed();
    if (!this.session) return;
    const field = name === "model" ? "model" : "trustLevel";
    try {
      await call("PATCH", `/api/chat/${this.session}`, { [field]: choice.value });
      this.complain(null);
      choice.dataset.was = choice.value;
    } catch (error) {
      choice.value = choice.dataset.was;
      this.complain(error);
    }
  }

  abort(turnId) {
    call("POST", `/api/chat/${this.session}/abort`, turnId ? { turnId } : {}).catch((error) => {
      if (this.log.isWorking) this.complain(error);
    });
  }

  // Whoever went on writing meanwhile finds that here.
  wasSent(text) {
    if (this.field.value.startsWith(text)) this.field.value = this.field.value.slice(text.length);
    this.draft.keep();
    this.changed();
  }

  // Nothing can be said any more.
  lock() {
    this.form?.remove();
    this.queue?.remove();
    this.form = null;
  }

  show() {
    if (!this.form || !this.isReady) return;
    const working = this.log.isWorking;
    this.send.disabled = this.isSending || this.isEmpty;
    this.send.querySelector(".word").textContent = working ? this.send.dataset.queue : this.send.dataset.send;
    this.stop.hidden = !working;
    this.steer.hidden = !working || !this.field.value.trim() || this.files.chosen.length > 0;
    this.queue.replaceChildren(...this.log.queued.map(([turnId, { brief }]) => this.waiting(turnId, brief)));
  }

  waiting(turnId, brief) {
    const item = element("li", "pill");
    const remove = element("button", "button plain");
    remove.type = "button";
    remove.append(icon("cross"));
    remove.setAttribute("aria-label", `${this.queue.dataset.remove}: ${brief}`);
    remove.addEventListener("click", () => this.abort(turnId));
    item.append(`${this.queue.dataset.next} `, element("bdi", "", `“${brief}”`), remove);
    return item;
  }
}

// A message of this chat as it was said, with its files.
async function said(session, turnId) {
  const { messages } = await call("GET", `/api/chat/${session}`);
  const [first] = messages.filter((message) => message.turnId === turnId && message.role === "user");
  const text = (first?.content ?? []).map((block) => block.text ?? "").join("\n");
  const attachments = await Promise.all((first?.attachments ?? []).map(fetched));
  return attachments.length ? { text, attachments } : { text };
}

async function fetched({ fileName, mimeType, url }) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${fileName}: ${words.fileGone}`);
  return { fileName, mimeType, base64Data: await base64(await answer.blob()) };
}

function key() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
