// The page: its views, the chosen index, language and theme.

import { current, get, indexPath } from "./api.js";
import { showAsk, showModes, startAsk } from "./ask.js";
import { showDocuments, startDocuments } from "./documents.js";
import { $, guarded, h } from "./dom.js";
import { showGraph, startGraph } from "./graph.js";
import { route } from "./route.js";
import { learn, switchLanguage, t, translate } from "./strings.js";

const VIEWS = new Map(Object.entries({ ask: showAsk, graph: showGraph, documents: showDocuments }));

// Show the place that the address names. A link of the navigation leads back to where one was in its view.
function show() {
  const { view, parts } = route();
  for (const link of document.querySelectorAll("nav a")) {
    const isShown = link.dataset.t === view;
    $(`#${link.dataset.t}`).hidden = !isShown;
    link.ariaCurrent = isShown ? "page" : null;
    if (isShown) link.setAttribute("href", location.hash || `#${view}`);
  }
  for (const dialog of document.querySelectorAll("dialog:not(#token)")) dialog.close();
  scrollTo(0, 0);
  document.title = [parts.at(-1), t(view), current.index].filter(Boolean).join(" · ");
  VIEWS.get(view)(parts);
}

const prefersDark = matchMedia("(prefers-color-scheme: dark)");

// The theme that the user chose, or else that of the system.
function showTheme() {
  document.documentElement.style.colorScheme = localStorage.getItem("theme") ?? "";
  dispatchEvent(new Event("themechange"));
}

function switchTheme() {
  const shown = localStorage.getItem("theme") ?? (prefersDark.matches ? "dark" : "light");
  localStorage.setItem("theme", shown === "dark" ? "light" : "dark");
  showTheme();
}

const start = guarded(async () => {
  const names = await get("/indexes");
  const select = $("#index");
  select.replaceChildren(...names.map((name) => h("option", {}, name)));
  const wanted = [new URLSearchParams(location.search).get("index"), sessionStorage.getItem("index")];
  current.index = select.value = wanted.find((name) => names.includes(name)) ?? names[0];
  sessionStorage.setItem("index", current.index);
  const address = (name) => (names.length > 1 ? `?index=${encodeURIComponent(name)}` : location.pathname);
  history.replaceState(null, "", address(current.index) + location.hash); // so that a link names its index
  select.addEventListener("change", () => location.assign(`?index=${encodeURIComponent(select.value)}#${route().view}`));
  const settings = await get(indexPath("/settings"));
  learn(settings);
  showModes(Object.keys(settings.modes));
  addEventListener("hashchange", show);
  show();
  if (matchMedia("(hover: hover)").matches) $("textarea").focus(); // elsewhere a keyboard would cover the page
});

for (const name of VIEWS.keys()) {
  $("nav").append(h("a", { href: `#${name}`, t: name }));
  $("main").append(h("section", { id: name, class: "view", label: name, hidden: true }));
}
showTheme();
startAsk();
startGraph();
startDocuments();
translate(document.body);
$("#language").addEventListener("click", switchLanguage);
$("#theme").addEventListener("click", switchTheme);
prefersDark.addEventListener("change", showTheme);
$("#notice button").addEventListener("click", () => ($("#notice").hidden = true));
start();
