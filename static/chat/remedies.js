// The buttons under an error. One that has to wait counts down where everybody can see it.

export function remedies(place, composer) {
  const acts = {
    retry: (button) => composer.again(button.closest(".turn").dataset.turn),
    new_chat: () => location.assign("/"),
    settings: () => location.assign("/settings"),
  };
  place.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-action]");
    if (button && !button.disabled) acts[button.dataset.action]?.(button);
  });
  const look = () => place.querySelectorAll("[data-wait]").forEach(count);
  new MutationObserver(look).observe(place, { childList: true, subtree: true });
  look();
}

function count(button) {
  const until = Date.parse(button.dataset.from) + Number(button.dataset.wait);
  delete button.dataset.wait;
  const label = button.textContent;
  const tick = () => {
    const left = Math.ceil((until - Date.now()) / 1000);
    button.disabled = left > 0;
    button.textContent = left > 0 ? `${label} (${left})` : label;
    if (left > 0 && button.isConnected) setTimeout(tick, 1000);
  };
  tick();
}
