"use strict";
// The page is asked for again every few seconds; the content is replaced when it has changed.
const part = (id, page = document) => page.getElementById(id);
const refresh = async () => {
  const headers = { "If-None-Match": document.body.dataset.version };
  const answer = await fetch(location.href, { headers, cache: "no-store" }).catch(() => null);
  part("lost").hidden = answer !== null;
  if (answer?.status === 200) {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const focused = document.activeElement.id;
    const unfolded = [...document.querySelectorAll("details[open][id]")].map((it) => it.id);
    const folded = [...document.querySelectorAll("details:not([open])[id]")].map((it) => it.id);
    const scrolled = [...document.querySelectorAll(".scroll")].map((it) => it.scrollLeft);
    Object.assign(document.body.dataset, { ...page.body.dataset });
    part("content").replaceChildren(...part("content", page).childNodes);
    for (const id of unfolded) if (part(id)) part(id).open = true;
    for (const id of folded) if (part(id)) part(id).open = false;
    document.querySelectorAll(".scroll").forEach((it, at) => { it.scrollLeft = scrolled[at] ?? 0; });
    watch();
    if (focused && document.activeElement === document.body) part(focused)?.focus({ preventScroll: true });
  }
  setTimeout(refresh, 1000 * document.body.dataset.seconds);
};
setTimeout(refresh, 1000 * document.body.dataset.seconds);
