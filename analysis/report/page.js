"use strict";
// Sorting: numbers by value, text by language; cells without a value stay last in either direction.
addEventListener("click", ({ target }) => {
  const head = target.closest?.("table.sortable thead button")?.parentElement;
  if (!head) return;
  const table = head.closest("table"), sign = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
  const key = (row) => row.cells[head.cellIndex].dataset.sort;
  const rows = [...table.tBodies[0].rows].sort((one, two) => {
    const [a, b] = [key(one), key(two)];
    if (a === "" || b === "") return (a === "") - (b === "");
    const [x, y] = [Number(a), Number(b)];
    return sign * (Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y);
  });
  table.tBodies[0].append(...rows);
});
// What is wider than the screen says so, and fades out as long as there is more on the right.
// A figure that is drawn much smaller than its own size says that a tap enlarges it.
const measure = (box) => {
  const hidden = box.scrollWidth - box.clientWidth;
  const drawing = box.querySelector(":scope > :is(.drawing, img)");
  const natural = parseFloat(getComputedStyle(box).getPropertyValue("--natural"));
  const share = drawing && natural ? drawing.getBoundingClientRect().width / natural : 1;
  box.parentElement.classList.toggle("wide", hidden > 2);
  box.parentElement.classList.toggle("shrunk", share < 0.8);
  box.classList.toggle("more", hidden - box.scrollLeft > 2);
};
// A table that is a little too wide for its place has smaller letters and margins, and is scrolled only if that is not enough.
const widths = new WeakMap();
const tighten = (box) => {
  if (widths.get(box) === box.clientWidth || !box.querySelector(":scope > table")) return;
  widths.set(box, box.clientWidth);
  box.classList.remove("tight");
  box.classList.toggle("tight", box.scrollWidth - box.clientWidth > 2);
};
const sizes = new ResizeObserver((changes) => changes.forEach(({ target }) => { tighten(target); measure(target); }));
const watch = () => {
  sizes.disconnect();
  for (const box of document.querySelectorAll(".scroll")) sizes.observe(box);
};
const phone = matchMedia("(max-width: 40rem)");
const enlarge = (target) => {
  const figure = target.closest?.("figure:has(> .scroll > :is(.drawing, img))");
  if (phone.matches && target.closest?.(".scroll") && figure) figure.classList.toggle("enlarged");
};
addEventListener("click", ({ target }) => enlarge(target));
// On a phone, a long table shows its first rows, as many as page.css says, and a button that shows all.
const shorten = () => {
  for (const table of document.querySelectorAll("figure > .scroll > table.sortable")) {
    const box = table.parentElement, { length } = table.tBodies[0].rows;
    if (box.dataset.rows || length <= (table.matches(".stacked") ? 5 : 12) + 1) continue; // one row more is no longer than the button
    box.dataset.rows = length;
    const button = Object.assign(document.createElement("button"), { type: "button", className: "rest", textContent: `Show all ${length} rows` });
    button.addEventListener("click", () => box.classList.remove("short"));
    box.classList.add("short");
    box.after(button);
  }
};
shorten();
addEventListener("replaced", shorten);
addEventListener("keydown", ({ key, target }) => { if (key === "Enter" && target.matches?.(".scroll")) enlarge(target); });
addEventListener("scroll", ({ target }) => { if (target.matches?.(".scroll")) measure(target); }, { capture: true, passive: true });
watch();
// Paper has no clicks: what is folded away is printed, and folded again afterwards.
let unfolded = [];
addEventListener("beforeprint", () => {
  unfolded = [...document.querySelectorAll("details:not([open])")];
  for (const details of unfolded) details.open = true;
});
addEventListener("afterprint", () => { for (const details of unfolded) details.open = false; });
// A link opens what it leads to: a configuration's runs, an experiment, and what these are folded into.
const open = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const inside = target?.querySelector(":scope > :is(details.experiment, details.part)");
  if (inside) inside.open = true;
  target?.closest(".short")?.classList.remove("short");
  for (let it = target?.closest("details"); it; it = it.parentElement.closest("details")) it.open = true;
  target?.scrollIntoView();
};
// On a phone, the parts of an update report below its verdicts are folded.
const parts = document.querySelectorAll("details.part");
const unfold = document.querySelector(".unfold");
const foldParts = () => {
  for (const part of parts) part.open = !phone.matches;
  if (unfold) unfold.hidden = !phone.matches;
};
if (parts.length) {
  phone.addEventListener("change", foldParts);
  foldParts();
  unfold?.addEventListener("click", () => {
    for (const part of parts) part.open = true;
    unfold.hidden = true;
  });
}
addEventListener("hashchange", open);
open();
// A page that was moved with its store names the store where it is now.
const { results, page } = document.body.dataset;
if (page && location.protocol === "file:") {
  const path = decodeURIComponent(location.pathname);
  const now = path.endsWith(`/${page}`) ? path.slice(0, -page.length - 1) : results;
  const moved = now !== results && /^[\w./-]+$/.test(now);
  for (const code of moved ? document.querySelectorAll("code") : []) {
    code.textContent = code.textContent.replaceAll(`--results ${results}`, `--results ${now}`);
  }
}
// The contents stand at the side of a wide page and are folded above a narrow one.
const contents = document.querySelector(".contents > details");
if (contents) {
  const wide = matchMedia("(min-width: 1100px)");
  const fold = () => { contents.open = wide.matches; };
  wide.addEventListener("change", fold);
  fold();
}
