// One way to the server. Whatever goes wrong becomes an Error with a sentence for a person, and with
// the server's code for it where it has one.

import { words } from "./html.js";

export async function call(method, path, body, headers = {}) {
  const answer = await send(method, path, {
    headers: { "X-CSRFToken": csrf(), "Content-Type": "application/json", Prefer: "respond-async", ...headers },
    body: body && JSON.stringify(body),
  });
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw Object.assign(new Error(answered(answer)), found.error);
  return found;
}

export async function markup(path) {
  const answer = await send("GET", path, {});
  if (!answer.ok) throw new Error(answered(answer));
  return answer.text();
}

function answered({ status }) {
  return words.answered.replace("{status}", status);
}

export function toSignIn() {
  location.assign(`/signin?next=${encodeURIComponent(location.pathname)}`);
  return new Promise(() => {}); // the page is about to go
}

async function send(method, path, more) {
  const answer = await fetch(path, { method, ...more }).catch(() => {
    throw Object.assign(new Error(words.offline), { isAway: true });
  });
  return answer.status === 401 || new URL(answer.url).pathname === "/signin" ? toSignIn() : answer;
}

export function csrf() {
  // From the cookie each time: signing in again in another tab changes it.
  return document.cookie.match(/(?:^|; )csrftoken=([^;]*)/)?.[1] ?? "";
}
