// What a child asks whoever started it: a person who watches may answer in its place, with one press.

import { call } from "./api.js";

export function options(place, complain) {
  place.addEventListener("click", async ({ target }) => {
    const button = target.closest("[data-option]");
    if (!button) return;
    const all = [...button.parentElement.querySelectorAll("button")];
    for (const each of all) each.disabled = true;
    try {
      await call("POST", `/api/chat/${button.dataset.child}/inject`, { message: button.dataset.option });
      button.setAttribute("aria-pressed", "true");
    } catch (error) {
      for (const each of all) each.disabled = false;
      complain(error);
    }
  });
}
