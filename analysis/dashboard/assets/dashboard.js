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
// What Dash need not know: elements by their name, attributes and children. One that is there already is changed.
const shape = (old, made) => {
  if (typeof made === "string") {
    if (old?.nodeType !== Node.TEXT_NODE) return document.createTextNode(made);
    if (old.data !== made) old.data = made;
    return old;
  }
  const [name, given, children] = made;
  const same = old?.localName === name && old.id === (given.id ?? "");
  const node = same ? old : document.createElement(name);
  for (const { name: has } of [...node.attributes]) if (!(has in given) && has !== "open") node.removeAttribute(has);
  for (const [of, value] of Object.entries(given)) if (node.getAttribute(of) !== value) node.setAttribute(of, value);
  children.forEach((child, at) => {
    const before = node.childNodes[at], after = shape(before, child);
    if (!before) node.append(after);
    else if (before !== after) before.replaceWith(after);
  });
  while (node.childNodes.length > children.length) node.lastChild.remove();
  if (name === "option") node.selected = "selected" in given;
  return node;
};
const make = () => {
  for (const holder of document.querySelectorAll("[data-tree]")) {
    const { tree } = holder.dataset;
    if (holder.made === tree) continue;
    holder.made = tree;
    const before = holder.firstChild, after = shape(before, JSON.parse(tree));
    if (before !== after) holder.replaceChildren(after);
  }
};
// What has been made anew is as it was: a keyboard stays where it is, and what has been unfolded stays so.
let focused = null;
const unfolded = new Set();
document.addEventListener("pointerdown", () => { focused = null; });
document.addEventListener("focusin", (event) => { focused = event.target.id; });
document.addEventListener("toggle", ({ target }) => {
  if (target.id) unfolded[target.open ? "add" : "delete"](target.id);
}, true);
new MutationObserver(() => {
  make();
  for (const details of document.querySelectorAll("details[id]:not([open])")) details.open = unfolded.has(details.id);
  if (!focused || document.activeElement !== document.body) return;
  const again = document.getElementById(focused) ?? document.getElementById("content");
  again?.focus({ preventScroll: true });
}).observe(document.documentElement, { childList: true, subtree: true, attributeFilter: ["data-tree"] });
