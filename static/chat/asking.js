// Asks a person, in a dialog of the page: yes or no, or for a line of text. null where they would rather not.

export function asking({ title, text = "", yes, value, longest = 200, danger = false }) {
  const dialog = document.querySelector("#ask");
  const field = dialog.querySelector("#ask-field");
  const input = field.querySelector("input");
  dialog.querySelector("#ask-title").textContent = title;
  dialog.querySelector("#ask-text").textContent = text;
  dialog.querySelector("#ask-yes").textContent = yes;
  dialog.querySelector("#ask-yes").classList.toggle("danger", danger);
  field.hidden = value === undefined;
  field.querySelector("span").textContent = title;
  input.maxLength = longest;
  input.value = value ?? "";
  dialog.returnValue = "";
  dialog.showModal();
  if (!field.hidden) input.select();
  return new Promise((resolve) => {
    dialog.addEventListener(
      "close",
      () => resolve(dialog.returnValue !== "yes" ? null : value === undefined ? true : input.value.trim()),
      { once: true },
    );
  });
}
