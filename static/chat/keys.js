// Keys that work anywhere in the page. Those of the message itself are the composer's.

export function keys({ rail, composer }) {
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || document.querySelector("dialog[open]")) return;
    const act = of(event, rail, composer);
    if (!act) return;
    event.preventDefault();
    act();
  });
}

function of(event, rail, composer) {
  const { key } = event;
  const control = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
  if (control && key.toLowerCase() === "j") return () => location.assign("/");
  if (control && key.toLowerCase() === "k") return () => find(rail);
  if (event.altKey && key === "ArrowUp") return () => rail.step(-1);
  if (event.altKey && key === "ArrowDown") return () => rail.step(1);
  if (key === "Escape" && rail.isOpen) return () => close(rail);
  if (key === "/" && !event.target.closest("input, textarea, select")) return () => composer.field?.focus();
  return null;
}

function find(rail) {
  rail.open(true);
  rail.find.focus();
  rail.find.select();
}

function close(rail) {
  rail.open(false);
  rail.menu.focus();
}
