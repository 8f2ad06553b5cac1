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
  dispatchEvent(new Event("replaced"));
  if (focused && document.activeElement === document.body) part(focused)?.focus({ preventScroll: true });
};
const ask = async (version) => {
  const asked = location.href;
  const answer = await fetch(asked, { headers: { "If-None-Match": version }, cache: "no-store" }).catch(() => null);
  part("lost").hidden = answer !== null;
  if (![200, 404].includes(answer?.status) || asked !== location.href) return;
  show(new DOMParser().parseFromString(await answer.text(), "text/html"));
};
const refresh = async () => {
  await ask(document.body.dataset.version);
  setTimeout(refresh, 1000 * document.body.dataset.seconds);
};
setTimeout(refresh, 1000 * document.body.dataset.seconds);
// Another address of the same page, whose charts stay in place.
const visit = (address) => {
  history.pushState(null, "", address);
  ask("");
};
addEventListener("popstate", () => ask(""));
// A choice in a form is the address of the page.
addEventListener("change", ({ target }) => {
  const form = target.closest?.("form.choices");
  if (!form) return;
  const chosen = new URLSearchParams(new FormData(form));
  for (const [name, value] of [...chosen]) if (!value) chosen.delete(name);
  visit(new URL(`${form.action}?${chosen}`));
});
