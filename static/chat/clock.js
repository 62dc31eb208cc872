// Times of a page, as the clock of whoever reads shows them.

const STYLES = { when: { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" } };

export function clock(place) {
  for (const time of place.querySelectorAll("time[data-clock]")) {
    const at = new Date(time.dateTime);
    const style = STYLES[time.dataset.clock];
    time.textContent = style ? at.toLocaleString([], style) : at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  }
}

clock(document);
