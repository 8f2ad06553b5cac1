"use strict";
// Links to other views, and lists of them, change the address without loading the page anew.
const go = (address) => window.dash_clientside.set_props("address", { search: address });
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='?']");
  if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(link.getAttribute("href"));
});
document.addEventListener("change", (event) => {
  if (event.target.matches("select")) go(event.target.value);
});
// What has been made anew is as it was: a keyboard stays where it is, and what has been unfolded stays so.
let focused = null;
const unfolded = new Set();
document.addEventListener("pointerdown", () => { focused = null; });
document.addEventListener("focusin", (event) => { focused = event.target.id; });
document.addEventListener("toggle", ({ target }) => {
  if (target.id) unfolded[target.open ? "add" : "delete"](target.id);
}, true);
new MutationObserver(() => {
  for (const details of document.querySelectorAll("details[id]:not([open])")) details.open = unfolded.has(details.id);
  if (!focused || document.activeElement !== document.body) return;
  const again = document.getElementById(focused) ?? document.getElementById("content");
  again?.focus({ preventScroll: true });
}).observe(document.documentElement, { childList: true, subtree: true });
