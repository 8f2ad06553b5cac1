// Give each cell of a table the name of its column, which site.css shows on narrow screens.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.docutils")) {
    const names = [...table.querySelectorAll("thead th")].map((name) => name.textContent.trim());
    table.classList.toggle("wide", names.length > 8 || names.length === 0);
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.children].forEach((cell, at) => { cell.dataset.column = at ? names[at] ?? "" : ""; });
    }
  }
});
