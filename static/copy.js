// A button that copies what stands beside it. Without a clipboard (plain HTTP) it stays hidden.

for (const button of document.querySelectorAll("[data-copies]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copies);
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = button.dataset.done;
    } catch {
      getSelection().selectAllChildren(source); // then a person copies it with the keyboard
    }
  });
}
