// The page: its views, the chosen index, language and theme.

import { current, get } from "./api.js";
import { showAsk, startAsk } from "./ask.js";
import { showDocuments, startDocuments } from "./documents.js";
import { $, guarded, h } from "./dom.js";
import { showGraph, startGraph } from "./graph.js";
import { switchLanguage, translate } from "./strings.js";

const VIEWS = new Map(Object.entries({ ask: showAsk, graph: showGraph, documents: showDocuments }));

function show() {
  const [, view = "ask"] = location.hash.match(/^#(ask|graph|documents)$/) ?? [];
  for (const name of VIEWS.keys()) {
    $(`#${name}`).hidden = name !== view;
    $(`nav a[href="#${name}"]`).ariaCurrent = name === view ? "page" : null;
  }
  $("#passage").close();
  scrollTo(0, 0);
  VIEWS.get(view)();
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
  current.index = select.value = names.find((name) => name === sessionStorage.getItem("index")) ?? names[0];
  select.addEventListener("change", () => {
    sessionStorage.setItem("index", select.value);
    location.reload();
  });
  addEventListener("hashchange", show);
  show();
  $("textarea").focus();
});

for (const name of VIEWS.keys()) {
  $("nav").append(h("a", { href: `#${name}`, t: name }));
  $("main").append(h("section", { id: name, class: "view", hidden: true }));
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
