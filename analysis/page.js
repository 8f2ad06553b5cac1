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
// A link to a configuration's runs opens them.
const open = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) { target.open = true; target.scrollIntoView(); }
};
addEventListener("hashchange", open);
open();
