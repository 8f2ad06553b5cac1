"use strict";
// Charts of Plotly.js. A point has the id of its run or, of several runs, the address of their list. A chart keeps its zoom when the page is read again, and its element.
const touched = matchMedia("(pointer: coarse), (max-width: 40rem)").matches; // a finger that drags scrolls the page
const options = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d"] };
if (touched) options.displayModeBar = false;
const mostPicked = 12;
const kept = new Map();
const addressOf = (run) => (run.startsWith("/runs?") ? run : `/run?${new URLSearchParams({ id: run })}`);
const openRun = ({ points }) => {
  const run = points[0].customdata;
  if (run) location.assign(addressOf(run));
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
// The line of the key that has the mouse or the focus stays; the other lines fade. Without a key, all are as drawn.
const findLine = (key) => {
  const chart = kept.get("chart-curves");
  if (!chart?.isConnected) return;
  const lines = chart.data.flatMap(({ customdata }, at) => (customdata ? [at] : []));
  const found = lines.filter((at) => addressOf(chart.data[at].customdata[0]) === key?.getAttribute("href"));
  if (key && !found.length) return;
  Plotly.restyle(chart, { opacity: lines.map((at) => (!key || found.includes(at) ? 1 : 0.12)) }, lines);
};
for (const kind of ["mouseover", "focusin"]) addEventListener(kind, ({ target }) => {
  const key = target.closest?.(".keys a");
  if (key) findLine(key);
});
for (const kind of ["mouseout", "focusout"]) addEventListener(kind, ({ target }) => {
  if (target.closest?.(".keys a")) findLine(null);
});
// A chart may have a layout for narrow screens, where x and y of its points change places.
const forThisScreen = ({ data, layout }) => {
  const upright = layout.meta?.narrow;
  if (!upright || !matchMedia("(max-width: 40rem)").matches) return { data, layout };
  return { data: data.map((trace) => ({ ...trace, x: trace.y, y: trace.x })), layout: upright };
};
const draw = () => {
  for (const fresh of document.querySelectorAll(".chart[data-figure]")) {
    const { data, layout } = forThisScreen(JSON.parse(fresh.dataset.figure));
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
