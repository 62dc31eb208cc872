// Captures: text files that are dropped or chosen come to lie in the vault, one after the other.

import { call } from "./chat/api.js";

const LARGEST = 1 << 20; // bytes

const form = document.querySelector("#capture");
const field = form.querySelector("#dropped");
const kept = form.querySelector("#kept");
const trouble = document.querySelector("#trouble");

async function keep(file) {
  if (file.size > LARGEST) throw new Error(form.dataset.large.replace("{name}", file.name));
  const content = await text(file);
  const { path } = await call("POST", "/api/captures", { filename: file.name, content, workspace: form.dataset.workspace });
  kept.textContent = form.dataset.kept.replace("{path}", path);
  return path;
}

// What is no text would lie there with its bytes replaced, and be of use to nobody.
async function text(file) {
  try {
    const content = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    if (!content.includes("\0")) return content;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
  throw new Error(form.dataset.noText.replace("{name}", file.name));
}

async function keepAll(files) {
  trouble.hidden = true;
  try {
    let last = "";
    for (const file of files) last = await keep(file);
    if (last) location.search = new URLSearchParams({ path: last });
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
