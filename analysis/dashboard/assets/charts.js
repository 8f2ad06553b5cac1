"use strict";
// Charts of Plotly.js. A chart keeps its zoom when the page is read again, and its element.
const options = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d"] };
const kept = new Map();
const pick = (run) => {
  const address = new URL(location.href);
  const picked = new Set((address.searchParams.get("runs") ?? "").split(",").filter(Boolean));
  if (!picked.delete(run)) picked.add(run);
  if (picked.size) address.searchParams.set("runs", [...picked].join(","));
  else address.searchParams.delete("runs");
  visit(address);
};
const draw = () => {
  for (const fresh of document.querySelectorAll(".chart[data-figure]")) {
    const { data, layout } = JSON.parse(fresh.dataset.figure);
    const before = kept.get(fresh.id);
    let chart = fresh;
    if (before && before !== fresh) {
      before.setAttribute("aria-label", fresh.getAttribute("aria-label"));
      fresh.replaceWith(before);
      chart = before;
    }
    delete chart.dataset.figure;
    Plotly.react(chart, data, layout, options);
    if (!kept.has(chart.id)) {
      kept.set(chart.id, chart);
      if (chart.dataset.picks) chart.on("plotly_click", ({ points }) => pick(points[0].customdata));
    }
  }
};
addEventListener("replaced", draw);
addEventListener("change", ({ target }) => {
  const form = target.closest?.("form.choices");
  if (form) visit(new URL(`${form.action}?${new URLSearchParams(new FormData(form))}`));
});
draw();
