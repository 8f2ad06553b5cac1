"use strict";
// A view is an address. Another view is fetched, and those parts of the page are replaced that it changes.
const PARTS = ["links", "said", "controls", "content"];
const part = (id, page = document) => page.getElementById(id);
const shown = Object.fromEntries(PARTS.map((id) => [id, part(id).innerHTML]));
let asked = 0;

// Plotly takes a second to load; the page is shown before.
const plotly = new Promise((loaded) => {
  const script = document.createElement("script");
  script.src = "/plotly.js";
  script.onload = loaded;
  document.head.append(script);
});

const draw = async () => {
  for (const place of document.querySelectorAll("[data-src]")) {
    const address = place.dataset.src;
    place.removeAttribute("data-src");
    fetch(address).then((answer) => answer.text()).then((html) => { place.innerHTML = html; draw(); }).catch(() => {});
  }
  await plotly;
  for (const graph of document.querySelectorAll(".graph:not(.js-plotly-plot)")) {
    const { data, layout } = JSON.parse(graph.dataset.figure);
    Plotly.newPlot(graph, data, layout, { displayModeBar: false, responsive: true });
    graph.on("plotly_click", ({ points: [point] }) => {
      if (point?.customdata && graph.dataset.click) go(graph.dataset.click + encodeURIComponent(point.customdata));
    });
  }
};

const replace = (page) => {
  const focused = document.activeElement.id;
  const unfolded = [...document.querySelectorAll("details[open][id]")].map((it) => it.id);
  const scrolled = [...document.querySelectorAll(".scroll")].map((it) => it.scrollLeft);
  for (const id of PARTS) {
    const made = part(id, page), html = made.innerHTML;
    if (html === shown[id]) continue;
    shown[id] = html;
    for (const graph of made.querySelectorAll(".graph")) {
      const before = part(graph.id);
      if (before?.dataset.figure === graph.dataset.figure) graph.replaceWith(before);  // drawn already
    }
    part(id).querySelectorAll(".js-plotly-plot").forEach((it) => Plotly.purge(it));
    part(id).replaceChildren(...made.childNodes);
  }
  for (const id of unfolded) if (part(id)) part(id).open = true;
  document.querySelectorAll(".scroll").forEach((it, at) => { it.scrollLeft = scrolled[at] ?? 0; });
  if (focused && document.activeElement === document.body) {
    (part(focused) ?? part("content")).focus({ preventScroll: true });
  }
  draw();
};

const show = async () => {
  const turn = ++asked;
  const answer = await fetch(location.href).catch(() => null);
  const text = answer?.ok ? await answer.text() : "";
  if (turn !== asked) return;  // something else has been chosen meanwhile
  if (!text) {
    part("said").textContent = "The dashboard does not answer.";
    return;
  }
  const page = new DOMParser().parseFromString(text, "text/html");
  document.body.dataset.version = page.body.dataset.version;
  replace(page);
};

const go = (address) => {
  if (address === location.search) return;
  history.pushState(null, "", address);
  show();
};

window.addEventListener("popstate", show);
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='?']");
  if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(link.getAttribute("href"));
});
document.addEventListener("change", ({ target }) => {
  if (target.form) target.form.requestSubmit();
  else go(target.value);
});
document.addEventListener("submit", (event) => {
  event.preventDefault();
  go(`?${new URLSearchParams(new FormData(event.target))}`);
});
setInterval(async () => {
  const answer = await fetch("/version").catch(() => null);
  if (answer?.ok && await answer.text() !== document.body.dataset.version) show();
}, 1000 * document.body.dataset.seconds);
draw();
