"use strict";
// Charts of Plotly.js. A point has the id of its run or, of several runs, the address of their list. A chart keeps its zoom when the page is read again, and its element.
const touched = matchMedia("(pointer: coarse), (max-width: 40rem)").matches; // a finger that drags scrolls the page
const options = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d"] };
if (touched) options.displayModeBar = false;
const mostPicked = 12;
const kept = new Map();
const openRun = ({ points }) => {
  const run = points[0].customdata;
  if (run) location.assign(run.startsWith("/runs?") ? run : `/run?${new URLSearchParams({ id: run })}`);
};
const pick = (chosen) => {
  const runs = new Set(chosen?.points.map((it) => it.customdata));
  if (!runs.size) return;
  const address = new URL(location.href);
  address.searchParams.set("runs", [...runs].slice(0, mostPicked).join(","));
  visit(address);
};
// Of several curves, the band of the one under the mouse or finger is shown; it precedes its curve.
const showBand = (chart, curve) => {
  const bands = chart.data.flatMap(({ meta }, at) => (meta === "hidden band" ? [at] : []));
  if (bands.length) Plotly.restyle(chart, { visible: bands.map((at) => at === curve - 1) }, bands);
};
const draw = () => {
  for (const fresh of document.querySelectorAll(".chart[data-figure]")) {
    const { data, layout } = JSON.parse(fresh.dataset.figure);
    const before = kept.get(fresh.id);
    let chart = fresh;
    if (before && before !== fresh) {
      before.setAttribute("aria-label", fresh.getAttribute("aria-label"));
      before.style.height = fresh.style.height; // it grows with the number of methods
      fresh.replaceWith(before);
      chart = before;
    }
    delete chart.dataset.figure;
    if (!kept.has(chart.id)) {
      kept.set(chart.id, chart);
      layout.dragmode = touched ? false : "zoom";
      Plotly.newPlot(chart, data, layout, options);
      chart.on("plotly_click", openRun);
      chart.on("plotly_hover", ({ points }) => showBand(chart, points[0].curveNumber));
      if (chart.dataset.picks) chart.on("plotly_selected", pick);
    } else {
      layout.dragmode = chart.layout.dragmode;
      Plotly.react(chart, data, layout, options).then(() => Plotly.Plots.resize(chart));
    }
  }
};
addEventListener("replaced", draw);
draw();
