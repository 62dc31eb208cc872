// The copy button of a block of code. Without a clipboard (plain HTTP from afar) the code is marked instead, and
// a person copies it with the keyboard.

import { words } from "./html.js";

const SAYS_SO_FOR = 2_000; // ms

export function copying(place) {
  place.addEventListener("click", async ({ target }) => {
    if (!target.matches(".copy")) return;
    const code = target.closest(".code").querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      const before = target.textContent;
      target.textContent = words.copied;
      setTimeout(() => (target.textContent = before), SAYS_SO_FOR);
    } catch {
      getSelection().selectAllChildren(code);
    }
  });
}
