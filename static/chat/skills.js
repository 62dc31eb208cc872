// A skill's zip is the body of a request: a form of that size would not be taken.

import { csrf } from "./api.js";

const form = document.querySelector("#upload");
const trouble = document.querySelector("#trouble");

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    const made = await sent(form.querySelector("#file").files[0]);
    location.assign(form.dataset.then.replace("NAME", encodeURIComponent(made.name)));
  } catch (error) {
    trouble.hidden = false;
    trouble.textContent = error.message;
    button.disabled = false;
  }
});

async function sent(file) {
  const answer = await fetch(`/api/skills?workspace=${encodeURIComponent(form.dataset.workspace)}`, {
    method: "POST",
    headers: { "X-CSRFToken": csrf(), "Content-Type": "application/zip" },
    body: file,
  });
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(found.error?.message ?? String(answer.status));
  return found;
}
