// Cards that come with the chat that they belong to, and go with their answer.

import { fragment } from "./html.js";

// All of them at first, and again whenever the connection was lost: what is not among them is over.
export function showAsked(place, { items, isAll }) {
  if (isAll) {
    const known = new Set(items.map(({ id }) => id));
    for (const old of [...place.children]) if (!known.has(old.id)) old.remove();
  }
  for (const { id, html } of items) {
    const old = document.getElementById(id);
    if (!html) old?.remove();
    else if (!old) place.append(fragment(html));
  }
}
