// Captures: text files that are dropped or chosen come to lie in the vault, one after the other.

import { call } from "./chat/api.js";

const LARGEST = 1 << 20; // bytes

const form = document.querySelector("#capture");
const field = form.querySelector("#dropped");
const kept = form.querySelector("#kept");
const trouble = document.querySelector("#trouble");

async function keep(file) {
  if (file.size > LARGEST) throw new Error(form.dataset.large.replace("{name}", file.name));
  const content = await file.text();
  const { path } = await call("POST", "/api/captures", { filename: file.name, content, workspace: form.dataset.workspace });
  kept.textContent = form.dataset.kept.replace("{path}", path);
}

async function keepAll(files) {
  trouble.hidden = true;
  try {
    for (const file of files) await keep(file);
    location.reload();
  } catch (error) {
    trouble.hidden = false;
    trouble.textContent = error.message;
  }
}

field.addEventListener("change", () => keepAll([...field.files]));
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  keepAll([...event.dataTransfer.files]);
});
