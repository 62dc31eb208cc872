// Keys that work anywhere in the page. Those of the message itself are the composer's.

export function keys({ rail, composer, about }) {
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || document.querySelector("dialog[open]")) return;
    const act = of(event, rail, composer, about);
    if (!act) return;
    event.preventDefault();
    act();
  });
}

function of(event, rail, composer, about) {
  const { key } = event;
  const control = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
  if (control && key.toLowerCase() === "j") return () => location.assign("/");
  if (control && key.toLowerCase() === "k") return () => find(rail);
  if (event.altKey && key === "ArrowUp") return () => rail.step(-1);
  if (event.altKey && key === "ArrowDown") return () => rail.step(1);
  if (key === "Escape" && about.more.open) return () => shut(about.more);
  if (key === "Escape" && event.target === rail.find && rail.find.value) return () => rail.clear();
  if (key === "Escape" && rail.isOpen) return () => close(rail);
  if (key === "Enter" && event.target === rail.find) return () => rail.first()?.click();
  if (key === "ArrowDown" && event.target === rail.find) return () => rail.first()?.focus();
  if (key === "/" && !event.target.closest("input, textarea, select")) return () => composer.field?.focus();
  return null;
}

function find(rail) {
  if (rail.isDrawer) rail.open(true);
  rail.find.focus();
  rail.find.select();
}

function shut(menu) {
  menu.open = false;
  menu.querySelector("summary").focus();
}

function close(rail) {
  rail.open(false);
  rail.menu.focus();
}
