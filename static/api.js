// One way to the server. Whatever goes wrong becomes an Error with a sentence for a person.

export async function call(method, path, body) {
  const headers = { "X-CSRFToken": token(), "Content-Type": "application/json", Prefer: "respond-async" };
  const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body) }).catch(() => {
    throw new Error("The server cannot be reached. What you wrote is still here; try again.");
  });
  const found = await answer.json().catch(() => ({}));
  if (answer.status === 401) return toSignIn();
  if (!answer.ok) throw new Error(found.error?.message || `The server answered with ${answer.status}.`);
  return found;
}

export function toSignIn() {
  location.assign(`/signin?next=${encodeURIComponent(location.pathname)}`);
  return new Promise(() => {}); // the page is about to go
}

function token() {
  // From the cookie each time: signing in again in another tab changes it.
  return document.cookie.match(/(?:^|; )csrftoken=([^;]*)/)?.[1] ?? "";
}
