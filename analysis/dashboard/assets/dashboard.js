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
  const here = document.querySelector("#links .here");
  if (here) here.parentElement.scrollLeft = here.offsetLeft - 80;
  for (const place of document.querySelectorAll("[data-src]")) {
    const address = place.dataset.src;
    place.removeAttribute("data-src");
    fetch(address).then((answer) => answer.text()).then((html) => { place.innerHTML = html; draw(); }).catch(() => {});
  }
  await plotly;
  for (const graph of document.querySelectorAll(".graph:not(.js-plotly-plot)")) {
    await new Promise((later) => setTimeout(later));  // the rest of the page is painted first
    if (!graph.isConnected || graph.matches(".js-plotly-plot")) continue;
    const { data, layout } = JSON.parse(graph.dataset.figure);
    Plotly.newPlot(graph, data, layout, { displayModeBar: false, responsive: true });
    graph.on("plotly_click", ({ points: [point] }) => {
      if (point?.customdata && graph.dataset.click) go(graph.dataset.click + encodeURIComponent(point.customdata));
    });
  }
};

// Tags and notes are kept by the browser: {run id: {tags, note}}.
const NOTES = "clops-sweep notes";
const notes = () => { try { return JSON.parse(localStorage.getItem(NOTES)) ?? {}; } catch { return {}; } };
const tagsOf = (note) => (note?.tags ?? "").split(",").map((it) => it.trim()).filter((it) => it);

const writeNote = ({ value, dataset: { run, note } }) => {
  const all = notes();
  all[run] = { ...all[run], [note]: value };
  if (!all[run].tags && !all[run].note) delete all[run];
  localStorage.setItem(NOTES, JSON.stringify(all));
};

const showNotes = () => {
  const all = notes();
  for (const field of document.querySelectorAll("[data-note]")) {
    field.value = all[field.dataset.run]?.[field.dataset.note] ?? "";
  }
  for (const cell of document.querySelectorAll("[data-tags]")) {
    const note = all[cell.dataset.tags];
    cell.textContent = tagsOf(note).join(", ") + (note?.note ? " ✎" : "");
    cell.title = note?.note ?? "";
  }
  const place = part("tags");
  if (!place) return;
  const tags = [...new Set(Object.values(all).flatMap(tagsOf))].sort();
  place.hidden = !tags.length;
  place.replaceChildren("Tags: ", ...tags.flatMap((tag) => {
    const runs = Object.keys(all).filter((run) => tagsOf(all[run]).includes(tag));
    const query = new URLSearchParams(location.search), link = document.createElement("a");
    query.delete("at");
    query.set("where", `run_id in ${JSON.stringify(runs)}`);
    link.href = `?${query}`;
    link.textContent = tag;
    return [link, " "];
  }));
};

const replace = (page) => {
  const { id: focused, value, selectionStart, selectionEnd } = document.activeElement;
  const typing = document.activeElement.matches("input[type=text], input[type=search], textarea");
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
  showNotes();
  if (focused && document.activeElement === document.body) {
    const again = part(focused) ?? part("content");
    if (typing && again.id === focused) again.value = value;
    again.focus({ preventScroll: true });
    if (typing && again.id === focused) again.setSelectionRange(selectionStart, selectionEnd);
  }
  draw();
};

const show = async () => {
  const turn = ++asked;
  document.body.ariaBusy = "true";
  const answer = await fetch(location.href).catch(() => null);
  const text = answer?.ok ? await answer.text() : "";
  if (turn !== asked) return;  // something else has been chosen meanwhile
  document.body.ariaBusy = "false";
  if (!text) {
    part("said").textContent = "The dashboard does not answer.";
    return;
  }
  const page = new DOMParser().parseFromString(text, "text/html");
  document.body.dataset.version = page.body.dataset.version;
  replace(page);
};

const go = (address, how = "pushState") => {
  if (address === location.search) return;
  history[how](null, "", address);
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
  if (target.dataset.note) return;
  if (target.form) target.form.requestSubmit();
  else go(target.value);
});
document.addEventListener("submit", (event) => {
  event.preventDefault();
  go(`?${new URLSearchParams(new FormData(event.target))}`);
});
let typed = 0;
document.addEventListener("input", ({ target }) => {
  if (target.dataset.note) writeNote(target);
  if (target.type !== "search") return;
  clearTimeout(typed);
  typed = setTimeout(() => go(`?${new URLSearchParams(new FormData(target.form))}`, "replaceState"), 200);
});

// A heatmap is one tab stop; arrow keys go to the next cell that has a value.
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
document.addEventListener("keydown", (event) => {
  const cell = event.target.closest(".heatmap td:has(> a)"), step = STEPS[event.key];
  if (!cell || !step) return;
  event.preventDefault();
  const rows = cell.closest("table").rows;
  let at = [cell.parentElement.rowIndex, cell.cellIndex], link = null;
  do {
    at = [at[0] + step[0], at[1] + step[1]];
    link = rows[at[0]]?.cells[at[1]]?.querySelector("a");
  } while (!link && rows[at[0]]?.cells[at[1]]);
  if (!link) return;
  cell.firstElementChild.tabIndex = -1;
  link.tabIndex = 0;
  link.focus();
});

setInterval(async () => {
  const answer = await fetch(`/version${location.search}`).catch(() => null);
  if (answer?.ok && await answer.text() !== document.body.dataset.version) show();
}, 1000 * document.body.dataset.seconds);
showNotes();
draw();
