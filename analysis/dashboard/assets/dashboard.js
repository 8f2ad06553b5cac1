"use strict";
// The page is asked for again every few seconds; the content is replaced when it has changed.
const part = (id, page = document) => page.getElementById(id);
const show = (page) => {
  const focused = document.activeElement.id;
  const unfolded = [...document.querySelectorAll("details[open][id]")].map((it) => it.id);
  const folded = [...document.querySelectorAll("details:not([open])[id]")].map((it) => it.id);
  const ticked = new Set([...document.querySelectorAll("input:checked")].map((it) => it.value));
  const scrolled = [...document.querySelectorAll(".scroll")].map((it) => it.scrollLeft);
  Object.assign(document.body.dataset, { ...page.body.dataset });
  part("content").replaceChildren(...part("content", page).childNodes);
  for (const id of unfolded) if (part(id)) part(id).open = true;
  for (const id of folded) if (part(id)) part(id).open = false;
  document.querySelectorAll(".scroll").forEach((it, at) => { it.scrollLeft = scrolled[at] ?? 0; });
  for (const box of document.querySelectorAll("input[type=checkbox]")) box.checked = ticked.has(box.value);
  watch();
  tell();
  dispatchEvent(new Event("replaced"));
  if (focused && document.activeElement === document.body) part(focused)?.focus({ preventScroll: true });
};
// How long ago the store was read, and when experiments changed, in the time of this browser.
const ago = (seconds) => {
  const passed = Math.max(0, Math.round(Date.now() / 1000 - seconds));
  if (passed < 100) return `${passed} s ago`;
  if (passed < 6000) return `${Math.round(passed / 60)} min ago`;
  if (passed < 172800) return `${Math.round(passed / 3600)} h ago`;
  return `${Math.round(passed / 86400)} days ago`;
};
const tell = () => {
  const read = part("read");
  const more = part("lost").hidden ? "this page updates by itself" : "there is no answer now";
  read.textContent = `Store read ${ago(read.dataset.at)}; ${more}.`;
  for (const it of document.querySelectorAll("time[data-at]")) it.textContent = ago(it.dataset.at);
};
setInterval(tell, 1000);
tell();
const ask = async (version) => {
  const asked = location.href;
  const answer = await fetch(asked, { headers: { "If-None-Match": version }, cache: "no-store" }).catch(() => null);
  part("lost").hidden = answer !== null;
  if (answer?.headers.has("Store-Read-At")) part("read").dataset.at = answer.headers.get("Store-Read-At");
  if (![200, 404].includes(answer?.status) || asked !== location.href) return;
  show(new DOMParser().parseFromString(await answer.text(), "text/html"));
};
const refresh = async () => {
  await ask(document.body.dataset.version);
  setTimeout(refresh, 1000 * document.body.dataset.seconds);
};
refresh();
// Another address of the same page, whose charts stay in place.
const visit = (address) => {
  history.pushState(null, "", address);
  ask("");
};
addEventListener("popstate", () => ask(""));
// On a narrow screen, the axes are folded, so that the chart is seen.
const narrow = matchMedia("(max-width: 40rem)");
const fold = () => {
  for (const axes of document.querySelectorAll("details.axes")) axes.open = !narrow.matches;
};
narrow.addEventListener("change", fold);
fold();
// A choice in a form is the address of the page.
addEventListener("change", ({ target }) => {
  const form = target.closest?.("form.choices");
  if (!form) return;
  const chosen = new URLSearchParams(new FormData(form));
  for (const [name, value] of [...chosen]) if (!value) chosen.delete(name);
  visit(new URL(`${form.action}?${chosen}`));
});
