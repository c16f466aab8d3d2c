"use strict";
(() => {
  const panel = document.getElementById("panel");
  const title = document.getElementById("panel-title");
  const body = document.getElementById("panel-body");
  let opener = null;

  /* One chunk's card, copied; only the spans that the number cites stay marked. */
  const copy = (chunk, number) => {
    const card = document.getElementById(chunk);
    const heading = document.createElement("h3");
    heading.textContent = card.querySelector("summary").textContent;
    const text = card.querySelector(".text").cloneNode(true);
    for (const mark of text.querySelectorAll("mark"))
      mark.classList.toggle("on", mark.dataset.numbers.split(" ").includes(number));
    return [heading, text];
  };

  /* A number whose claim is marked says why. */
  const open = (link, target) => {
    const marked = link.classList.contains("marked");
    const number = target.dataset.number || "";
    title.textContent = target.dataset.title || target.querySelector("summary").textContent;
    const chunks = target.dataset.chunks === undefined ? [target.id] : target.dataset.chunks.split(" ");
    const note = document.createElement("p");
    note.textContent = [marked && link.title, target.dataset.note].filter(Boolean).join("\n");
    body.replaceChildren(note, ...chunks.filter(Boolean).flatMap((chunk) => copy(chunk, number)));
    note.hidden = !note.textContent;
    for (const old of document.querySelectorAll(".current")) old.classList.remove("current");
    link.classList.add("current");
    opener = link;
    panel.hidden = false;
    panel.scrollTop = 0;
    document.getElementById("panel-close").focus({ preventScroll: true });
    const mark = body.querySelector("mark.on");
    if (mark) panel.scrollTop = Math.max(0, mark.offsetTop - panel.clientHeight / 3);
  };

  const close = () => {
    panel.hidden = true;
    for (const old of document.querySelectorAll(".current")) old.classList.remove("current");
    if (opener) opener.focus({ preventScroll: true });
  };

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    const target = document.getElementById((link.getAttribute("href") || "#").slice(1));
    if (!target) return;
    event.preventDefault();
    open(link, target);
  });
  document.getElementById("panel-close").addEventListener("click", close);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !panel.hidden) close();
  });
})();
