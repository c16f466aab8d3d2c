// Graph: search an entity, see its neighbourhood, and go on from there.

import { get, indexPath, post } from "./api.js";
import { line, relationWords } from "./ask.js";
import { $, Busy, guarded, h, inform, notify } from "./dom.js";
import { colorOf, Drawing, setTypes, UNKNOWN } from "./drawing.js";
import { editButtons, finished, separateButton, settleButton } from "./edit.js";
import { MOST_PASSAGES, openCitations, openSources } from "./passage.js";
import { plain } from "./markdown.js";
import { go, linkTo } from "./route.js";
import { format, listed, t } from "./strings.js";

const FOUND = 30;
const FEW = 5; // documents of a bearer that are named
const SLOW = 300; // milliseconds, after which the page says that it looks
const FIRST_LINES = 3; // of a description; the rest is folded
const ON_TIMELINE = 8; // dated statements beside an entity; the rest is in its history
const AROUND = 40; // relations that a click adds at most
const TITLE_NAMES = 3; // of a community without a report
const STATEMENTS = 100; // of a history that are shown at first, and added
const MOST_AROUND = 500; // that the server lists
const MOST_STATEMENTS = 500; // likewise
const MOST_HOMONYMS = 500; // likewise

// What `#graph/…` shows beside the drawing; the whole without a name.
const PLACES = new Map(Object.entries({
  entity: (name) => showEntity(name),
  history: (name) => showHistory(name),
  conflicts: () => showConflicts(),
  namesakes: (name) => showHomonyms(name),
  empty: () => reset(),
}));

let parts;
let drawing;
let searched = 0;
let told = 0;
let waiting; // until the page says that it looks

export function startGraph() {
  parts = {
    search: h("input", { type: "search", hint: "search_entity", label: "search_entity", oninput: () => find(), onkeydown: ({ key }) => key === "Enter" && $("#graph .line")?.click() }),
    type: h("select", { label: "type", onchange: () => find() }),
    total: h("p", { class: "soft", role: "status" }),
    found: h("ul", { class: "list" }),
    canvas: h("div", { class: "canvas tall", role: "img", label: "graph_drawing" }),
    legend: h("div", { class: "chips grow legend" }),
    about: h("aside", { class: "side" }),
  };
  const link = (key, ...place) => h("button", { t: key, onclick: () => go("graph", ...place) });
  $("#graph").replaceChildren(
    h("h1", { class: "offscreen", t: "graph" }),
    h("div", { class: "side" }, parts.search, parts.type, parts.total, parts.found),
    h("div", { class: "side" },
      h("div", { class: "row toolbar" }, link("overview"), link("conflicts", "conflicts"), link("homonyms", "namesakes"), link("clear", "empty")),
      parts.canvas, parts.legend),
    parts.about,
  );
  drawing = new Drawing(parts.canvas, (name) => choose(name));
  reset();
}

const choose = (name) => go("graph", "entity", name);

export const showGraph = guarded(async ([place, name] = []) => {
  const round = ++told;
  const counts = Object.entries(await get(indexPath("/types")));
  const isEmpty = !counts.length;
  $("#graph").classList.toggle("bare", isEmpty);
  if (isEmpty) return tell(round, ...emptyGraph());
  setTypes(counts.map(([type]) => type));
  const options = counts.map(([type, n]) => h("option", { value: type }, typeWords(type), ` (${format(n)})`));
  const chosen = parts.type.value;
  parts.type.replaceChildren(h("option", { value: "", t: "all_types" }), ...options);
  parts.type.value = chosen;
  const finding = find();
  const busy = new Busy("looking");
  clearTimeout(waiting);
  const timer = (waiting = setTimeout(() => parts.about.replaceChildren(busy.element), SLOW));
  try {
    if (round === told) await (PLACES.get(place) ?? (() => showOverview(round)))(name);
  } finally {
    clearTimeout(timer);
    busy.end();
  }
  await finding;
});

// The communities of the graph, drawn with their central entities.
const showOverview = guarded(async (round = ++told) => {
  const overview = await get(indexPath("/overview"));
  const { communities, reports_missing: missing } = overview;
  if (round === told || !drawing.types().length) drawOverview(overview);
  tell(round,
    h("h2", { t: "overview" }),
    h("p", { class: "soft", t: communities.length ? "communities_hint" : "choose_entity" }),
    h("ul", { class: "list" }, communities.map(({ title, names, entities: n, passages, summary }) =>
      line(() => choose(names[0]), h("span", { class: "grow" }, h("b", {}, summary ? title : listed(names.slice(0, TITLE_NAMES))), h("br"), h("span", { t: "entities", n: format(n) }), " · ", h("span", { t: "passages_n", n: format(passages) }), ...(summary ? [h("br"), h("span", { class: "small" }, summary)] : []))))),
    ...(missing ? [h("p", { class: "row" }, h("button", { class: "link", t: "write_reports", onclick: writeReports }))] : []),
  );
});

function drawOverview({ entities, relations }) {
  drawing.clear();
  drawing.add(entities, relations);
  showLegend();
}

// Beside a list that concerns no single entity, the whole is drawn, unless something is drawn.
const drawSomething = guarded(async () => {
  if (drawing.types().length) return;
  const overview = await get(indexPath("/overview"));
  if (!drawing.types().length) drawOverview(overview);
});

// What was said about an entity, as a line of time.
const showHistory = guarded(async (name, limit = STATEMENTS) => {
  const round = ++told;
  const [{ total, items }] = await Promise.all([get(indexPath("/history"), { name, limit, sentences: true }), drawNeighbourhood(name)]);
  drawing.center(name);
  const more = Math.min(limit + STATEMENTS, MOST_STATEMENTS);
  tell(round,
    h("p", {}, h("a", { href: linkTo("graph", "entity", name), t: "back_to", n: name })),
    h("h2", { t: "history_of", n: name }),
    h("p", { class: "soft", t: "history_hint" }),
    ...(items.length < total ? [h("p", { class: "soft" }, firstOf(items.length, total))] : []),
    h("ol", { class: "timeline" }, items.map((claim) => h("li", {}, claimLine(claim)))),
    ...(items.length < total && limit < more ? [h("button", { t: "more_statements", onclick: () => showHistory(name, more) })] : []),
  );
});

// How much of a long list is shown.
const firstOf = (count, total) => [h("span", { t: "first_n", n: format(count) }), h("span", { t: "of_n", n: format(total) })];

// Pairs of claims that cannot both hold; a person settles one by deleting a relation.
const showConflicts = guarded(async () => {
  const round = ++told;
  drawSomething();
  const conflicts = await get(indexPath("/conflicts"));
  const side = (claim) => h("li", {}, claimLine(claim), claim.kind === "relation" && settleButton(claim, () => showConflicts()));
  tell(round,
    h("h2", { t: "conflicts" }),
    h("p", { class: "soft", t: conflicts.length ? "conflicts_hint" : "conflicts_none" }),
    ...conflicts.map(({ subject, predicate, first, second }) =>
      h("article", { class: "card" }, h("h3", {}, [subject, predicate].filter(Boolean).join(" · ")), h("ul", { class: "timeline" }, side(first), side(second)))),
  );
});

// Names with perhaps several bearers, or one of them: why, the bearers with their passages, and a separation.
const showHomonyms = guarded(async (name = "") => {
  const round = ++told;
  drawSomething();
  const all = await get(indexPath("/homonyms"), { limit: MOST_HOMONYMS });
  const homonyms = name ? all.filter((homonym) => homonym.name === name) : all;
  const none = name ? "homonym_none" : "homonyms_none";
  tell(round,
    ...(name ? [h("p", {}, h("a", { href: linkTo("graph", "entity", name), t: "back_to", n: name }))] : []),
    h("h2", { t: "homonyms" }),
    h("p", { class: "soft", t: homonyms.length ? "homonyms_hint" : none, n: name }),
    ...homonyms.map(homonymCard),
  );
});

function homonymCard(homonym) {
  const { name, evidence, bearers, documents: titles } = homonym;
  const refresh = () => {
    drawing.remove(name);
    find();
    showHomonyms();
  };
  return h("article", { class: "card" },
    h("h3", {}, name),
    evidence.map(({ kind, detail }) => h("p", { class: "small", t: `against_${kind}`, n: detail })),
    h("ul", { class: "list" }, Object.entries(bearers).map(([qualifier, documents]) =>
      line(() => openSources({ entity: name }, documents), h("span", { class: "grow" }, h("b", {}, `${name} (${qualifier})`), h("span", { class: "soft small block" }, listed([...new Set(documents.slice(0, FEW).map((id) => titles[id]))])), documents.length > FEW && h("span", { class: "soft small", t: "documents_n", n: format(documents.length) }))))),
    h("p", { class: "row" }, separateButton(homonym, refresh)));
}

// When a claim holds, what it says, and the document; it opens the passage.
function claimLine(claim) {
  const { subject, predicate, value, text, document } = claim;
  const words = plain(text) || [subject, predicate, value].filter(Boolean).join(" → ");
  return h("button", { class: "line claim-line", onclick: () => openCitations([claim]) },
    h("span", { class: "grow" }, h("b", {}, dates(claim)), h("span", { class: "block" }, words), h("span", { class: "soft small block" }, document)));
}

function dates({ valid_from: from, valid_to: to, written }) {
  if (from && to) return `${from} – ${to}`;
  if (from) return from; // of an event as of a state: a birth is not "since"
  if (to) return t("until", to);
  return written ? t("written", written) : t("undated");
}


// Let the model write the missing reports on the communities, after its cost was agreed to.
const writeReports = guarded(async () => {
  const { calls, input_tokens, output_tokens } = await get(indexPath("/communities/estimate"));
  if (!calls) return inform(t("reports_complete"));
  if (!confirm(t("write_reports_why", `${format(calls)} · ${format(input_tokens + output_tokens)}`))) return;
  inform(t("writing_reports"));
  const { reports } = await finished(await post(indexPath("/communities/report"), { calls }));
  inform(t("reports_done", format(reports.length)));
  await showOverview();
});

function reset() {
  drawing.clear();
  parts.legend.replaceChildren();
  tell(++told, chooseEntity());
}

// What to do where the index has no entity.
const emptyGraph = () => [h("h2", { t: "graph_empty" }), h("p", { class: "soft", t: "graph_empty_hint" }), h("p", {}, h("button", { class: "main", t: "add_documents", onclick: () => go("documents") }))];

const typeWords = (type) => h("span", type === UNKNOWN ? { t: "type_unknown" } : {}, type === UNKNOWN ? "" : type);

const chooseEntity = () => h("p", { class: "soft", t: "choose_entity" });

// What stands beside the drawing: the answer to the last request, also when an earlier one takes longer.
function tell(round, ...nodes) {
  if (round !== told) return;
  clearTimeout(waiting);
  parts.about.replaceChildren(...nodes);
}

const find = guarded(async () => {
  const round = ++searched;
  const type = parts.type.value;
  drawing.showOnly(type);
  const { total, items } = await get(indexPath("/entities"), { q: parts.search.value, type, limit: FOUND });
  if (round !== searched) return; // the user has typed on
  const found = h("span", { t: total ? "found" : "no_matches", n: format(total) });
  parts.total.replaceChildren(...(items.length < total ? firstOf(items.length, total) : [found]));
  parts.found.replaceChildren(...items.map((one) =>
    line(() => choose(one.name), h("span", { class: "grow" }, h("b", {}, one.name), one.type !== UNKNOWN && ` ${one.type}`), format(one.degree))));
});

// Add an entity and its strongest relations to the drawing.
async function drawNeighbourhood(name, limit = AROUND) {
  const { entity, relations, neighbours, total } = await get(indexPath("/neighbourhood"), { name, limit });
  const center = { name: entity.name, type: entity.type, degree: total };
  const drawn = relations.map((one) => ({ ...one, predicate: listed(one.keywords) }));
  if (!drawing.add([center, ...neighbours], drawn, entity.name)) notify({ message: t("full") });
  showLegend();
  return { entity, drawn, total };
}

// An entity: what it is, its relations with what is said of them, its documents, and its place in the drawing.
const showEntity = guarded(async (name, limit = AROUND) => {
  const round = ++told;
  const { entity, drawn, total } = await drawNeighbourhood(name, limit);
  document.title = `${entity.name} · ${t("graph")}`;
  const items = drawn.map((one) => relationItem(one, entity.name));
  const documents = h("div", {});
  const timeline = h("div", {});
  const more = Math.min(limit + AROUND, MOST_AROUND);
  tell(round,
    h("h2", {}, entity.name),
    h("p", { class: "row" }, chip(entity.type),
      h("button", { class: "link", t: "sources", onclick: () => openSources({ entity: entity.name }) }),
      h("button", { class: "link", t: "history", onclick: () => go("graph", "history", entity.name) }),
      h("button", { class: "link", t: "collapse", onclick: () => collapse(entity.name) })),
    h("p", entity.aliases.length ? { class: "soft", t: "aliases", n: listed(entity.aliases) } : { hidden: true }),
    ...description(entity),
    h("p", { class: "row" }, editButtons(entity, (newName) => changed(entity.name, newName)),
      h("button", { class: "link", t: "homonyms", onclick: () => go("graph", "namesakes", entity.name) })),
    timeline,
    h("h3", { t: "relations_n", n: format(total) }),
    ...(items.length < total ? [h("p", { class: "soft" }, firstOf(items.length, total))] : []),
    h("ul", { class: "list" }, items),
    ...(items.length < total && limit < more ? [h("button", { t: "more_relations", onclick: () => showEntity(name, more) })] : []),
    documents,
  );
  drawing.center(entity.name);
  const [{ documents: titles }, { items: dated }] = await Promise.all([
    get(indexPath("/sources"), { entity: entity.name }),
    get(indexPath("/history"), { name: entity.name, limit: ON_TIMELINE, sentences: true, stated: true }),
  ]);
  if (dated.length) timeline.replaceChildren(h("h3", { t: "timeline" }), h("ol", { class: "timeline" }, dated.map((claim) => h("li", {}, claimLine(claim)))));
  documents.replaceChildren(h("h3", entity.chunk_ids.length < MOST_PASSAGES ? { t: "documents" } : { t: "documents_of_first", n: format(MOST_PASSAGES) }), h("ul", { class: "list links" }, Object.entries(titles).map(([id, title]) => h("li", {}, h("a", { href: linkTo("documents", id) }, title)))));
});

// What an entity is: the first lines of its description, and the others behind a button.
function description(entity) {
  const lines = entity.description.split("\n").map(plain);
  const [first, others] = [lines.slice(0, FIRST_LINES), lines.slice(FIRST_LINES)];
  const paragraph = (part) => h("p", { class: "description" }, part.join("\n"));
  return [paragraph(first), ...(others.length ? [h("details", {}, h("summary", { t: "more_passages" }), paragraph(others))] : [])];
}

// A relation that leads to the entity at its other end, and a button for the sentences behind it.
function relationItem(relation, name) {
  const { source, target, description } = relation;
  const words = h("span", { class: "grow" }, relationWords(relation), description && h("span", { class: "small block" }, plain(description.split("\n")[0])));
  return h("li", { class: "relation" },
    h("button", { class: "line", onclick: () => choose(source === name ? target : source) }, words),
    h("button", { class: "link small", t: "sentences", label: "sentences_of", n: `${source} – ${target}`, onclick: () => openSources({ entity: source, target }) }));
}

function collapse(name) {
  drawing.collapse(name);
  showLegend();
}

const showLegend = () => parts.legend.replaceChildren(...drawing.types().map((type) => chip(type)));

// After a change by hand: what was drawn of the entity is drawn anew.
function changed(oldName, newName) {
  drawing.remove(oldName);
  find();
  if (newName === null) go("graph", "empty");
  else choose(newName);
}

function chip(type) {
  const dot = h("span", { class: "dot" });
  dot.style.background = colorOf(type);
  return h("span", { class: "chip" }, dot, typeWords(type));
}
