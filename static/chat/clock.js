// Times of a page beside the chat, as the clock of whoever reads shows them.

for (const time of document.querySelectorAll("time[data-clock]")) {
  time.textContent = new Date(time.dateTime).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}
