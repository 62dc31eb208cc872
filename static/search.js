// Finds as one types: the newest words win, whatever comes back first.

import { markup } from "./chat/api.js";
import { fragment } from "./chat/html.js";

const PAUSE = 150; // ms after the last letter

const form = document.querySelector("#looking");
const field = form.querySelector("#q");
const kind = form.querySelector("#kind");
const found = document.querySelector("#found");
const trouble = document.querySelector("#trouble");
let soon = 0;

function wanted() {
  return new URLSearchParams({ q: field.value.trim(), kind: kind.value }).toString();
}

async function look() {
  const asked = wanted();
  history.replaceState(null, "", `${form.getAttribute("action")}?${asked}`);
  try {
    const html = await markup(`/search/found?${asked}`);
    if (asked !== wanted()) return;
    found.replaceChildren(fragment(html));
    trouble.hidden = true;
  } catch (error) {
    trouble.hidden = false;
    trouble.textContent = error.message;
  }
}

field.addEventListener("input", () => {
  clearTimeout(soon);
  soon = setTimeout(look, PAUSE);
});
kind.addEventListener("change", look);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(soon);
  look();
});
