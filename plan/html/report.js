"use strict";
const query = document.getElementById("query");
const objects = Array.from(document.querySelectorAll(".object"), (element) => ({ element, text: element.textContent.toLowerCase() }));
const folds = Array.from(document.querySelectorAll("details.fold"));
function search() {
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const object of objects) {
    const parents = object.element.dataset.of.toLowerCase();
    const found = words.every((word) => object.text.includes(word) || parents.includes(word));
    object.element.hidden = !found;
    shown += found ? 1 : 0;
  }
  for (const fold of folds) {
    fold.hidden = words.length > 0 && !fold.querySelector(".object:not([hidden])");
    if (words.length > 0 && !fold.hidden) fold.open = true;
  }
  document.getElementById("found").textContent = words.length > 0 ? shown + " of " + objects.length : "";
}
function setAll(open) {
  for (const fold of folds) fold.open = open;
}
query.addEventListener("input", search);
document.getElementById("open").addEventListener("click", () => setAll(true));
document.getElementById("close").addEventListener("click", () => setAll(false));
window.addEventListener("beforeprint", () => setAll(true));
