"use strict";
// Sorting: numbers by value, text by language; cells without a value stay last in either direction.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const sign = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
    const key = (row) => row.cells[column].dataset.sort;
    const rows = [...table.tBodies[0].rows].sort((one, two) => {
      const [a, b] = [key(one), key(two)];
      if (a === "" || b === "") return (a === "") - (b === "");
      const [x, y] = [Number(a), Number(b)];
      return sign * (Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y);
    });
    table.tBodies[0].append(...rows);
  }));
}
// What is wider than the screen says so, and fades out as long as there is more on the right.
const boxes = [...document.querySelectorAll(".scroll")];
const measure = (box) => {
  const hidden = box.scrollWidth - box.clientWidth;
  box.parentElement.classList.toggle("wide", hidden > 2);
  box.classList.toggle("more", hidden - box.scrollLeft > 2);
};
for (const box of boxes) box.addEventListener("scroll", () => measure(box), { passive: true });
const sizes = new ResizeObserver((changes) => changes.forEach((change) => measure(change.target)));
boxes.forEach((box) => sizes.observe(box));
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
  const inside = target?.querySelector(":scope > details.experiment");
  if (inside) inside.open = true;
  for (let it = target?.closest("details"); it; it = it.parentElement.closest("details")) it.open = true;
  target?.scrollIntoView();
};
addEventListener("hashchange", open);
open();
