// Graph: search an entity, see its neighbourhood, and go on from there.

import { get, indexPath, post } from "./api.js";
import { line, relationWords } from "./ask.js";
import { $, guarded, h, inform, notify } from "./dom.js";
import { colorOf, Drawing } from "./drawing.js";
import { editButtons, finished, separateButton, settleButton } from "./edit.js";
import { openCitations, openSources } from "./passage.js";
import { format, listed, t } from "./strings.js";

const FOUND = 30;
const AROUND = 40; // relations that a click adds at most
const TITLE_NAMES = 3; // of a community without a report
const MOST_AROUND = 500; // that the server lists
const MOST_HOMONYMS = 500; // likewise

let parts;
let drawing;
let searched = 0;
let told = 0;

export function startGraph() {
  parts = {
    search: h("input", { type: "search", hint: "search_entity", label: "search_entity", oninput: () => find(), onkeydown: ({ key }) => key === "Enter" && $("#graph .line")?.click() }),
    type: h("select", { label: "type", onchange: () => find() }),
    total: h("p", { class: "soft", role: "status" }),
    found: h("ul", { class: "list" }),
    canvas: h("div", { class: "canvas tall", role: "img", label: "graph_drawing" }),
    legend: h("div", { class: "chips grow" }),
    about: h("aside", { class: "side" }),
  };
  const clear = h("button", { t: "clear", onclick: reset });
  const overview = h("button", { t: "overview", onclick: () => showOverview() });
  const conflicts = h("button", { t: "conflicts", onclick: showConflicts });
  const homonyms = h("button", { t: "homonyms", onclick: () => showHomonyms() });
  $("#graph").replaceChildren(
    h("div", { class: "side" }, parts.search, parts.type, parts.total, parts.found),
    h("div", { class: "side" }, parts.canvas, h("div", { class: "row" }, parts.legend, overview, conflicts, homonyms, clear)),
    parts.about,
  );
  drawing = new Drawing(parts.canvas, (name) => choose(name));
  reset();
}

export const showGraph = guarded(async () => {
  const round = told;
  const counts = Object.entries(await get(indexPath("/types")));
  const options = counts.map(([type, n]) => h("option", { value: type }, `${type} (${format(n)})`));
  const chosen = parts.type.value;
  parts.type.replaceChildren(h("option", { value: "", t: "all_types" }), ...options);
  parts.type.value = chosen;
  await find();
  if (!drawing.types().length) await showOverview(round); // to begin with
});

// The communities of the graph, drawn with their central entities.
const showOverview = guarded(async (round = ++told) => {
  const { communities, entities, relations, reports_missing: missing } = await get(indexPath("/overview"));
  if (round === told || !drawing.types().length) {
    drawing.clear();
    drawing.add(entities, relations);
    showLegend();
  }
  if (!entities.length) return tell(round, chooseEntity());
  tell(round,
    h("h2", { t: "overview" }),
    h("p", { class: "soft", t: communities.length ? "communities_hint" : "choose_entity" }),
    h("ul", { class: "list" }, communities.map(({ title, names, entities: n, passages, summary }) =>
      line(() => choose(names[0]), h("span", { class: "grow" }, h("b", {}, summary ? title : listed(names.slice(0, TITLE_NAMES))), h("br"), h("span", { t: "entities", n: format(n) }), " · ", h("span", { t: "passages_n", n: format(passages) }), ...(summary ? [h("br"), h("span", { class: "small" }, summary)] : []))))),
    ...(missing ? [h("p", { class: "row" }, h("button", { class: "link", t: "write_reports", onclick: writeReports }))] : []),
  );
});

// What was said about an entity, as a line of time.
const showHistory = guarded(async (name) => {
  const round = ++told;
  const claims = await get(indexPath("/history"), { name });
  tell(round,
    h("h2", { t: "history_of", n: name }),
    h("p", { class: "soft", t: "history_hint" }),
    h("ol", { class: "timeline" }, distinct(claims).map((claim) => h("li", {}, claimLine(claim)))),
    h("button", { t: "close", onclick: () => choose(name) }),
  );
});

// Pairs of claims that cannot both hold; a person settles one by deleting a relation.
const showConflicts = guarded(async () => {
  const round = ++told;
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
  const all = await get(indexPath("/homonyms"), { limit: MOST_HOMONYMS });
  const homonyms = name ? all.filter((homonym) => homonym.name === name) : all;
  const none = name ? "homonym_none" : "homonyms_none";
  tell(round,
    h("h2", { t: "homonyms" }),
    h("p", { class: "soft", t: homonyms.length ? "homonyms_hint" : none, n: name }),
    ...homonyms.map(homonymCard),
    ...(name ? [h("button", { t: "close", onclick: () => choose(name) })] : []),
  );
});

function homonymCard(homonym) {
  const { name, evidence, bearers } = homonym;
  const refresh = () => {
    drawing.remove(name);
    find();
    showHomonyms();
  };
  return h("article", { class: "card" },
    h("h3", {}, name),
    evidence.map(({ kind, detail }) => h("p", { class: "small", t: `against_${kind}`, n: detail })),
    h("ul", { class: "list" }, Object.entries(bearers).map(([qualifier, documents]) =>
      line(() => openSources({ entity: name }, documents), h("span", { class: "grow" }, h("b", {}, `${name} (${qualifier})`), h("span", { class: "soft small block" }, listed(documents)))))),
    h("p", { class: "row" }, separateButton(homonym, refresh)));
}

// Of several relations in one sentence, the sentence once.
function distinct(claims) {
  const key = ({ chunk_id, start, text, predicate, value, ...claim }) =>
    JSON.stringify([chunk_id, start, dates(claim), text || [predicate, value]]);
  return [...new Map(claims.map((claim) => [key(claim), claim])).values()];
}

// When a claim holds, what it says, and the document; it opens the passage.
function claimLine(claim) {
  const { subject, predicate, value, text, document } = claim;
  const words = text || [subject, predicate, value].filter(Boolean).join(" → ");
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

const chooseEntity = () => h("p", { class: "soft", t: "choose_entity" });

// What stands beside the drawing: the answer to the last request, also when an earlier one takes longer.
function tell(round, ...nodes) {
  if (round === told) parts.about.replaceChildren(...nodes);
}

const find = guarded(async () => {
  const round = ++searched;
  const type = parts.type.value;
  drawing.showOnly(type);
  const { total, items } = await get(indexPath("/entities"), { q: parts.search.value, type, limit: FOUND });
  if (round !== searched) return; // the user has typed on
  parts.total.replaceChildren(h("span", { t: total ? "found" : "no_matches", n: format(total) }));
  parts.found.replaceChildren(...items.map((one) =>
    line(() => choose(one.name), h("span", { class: "grow" }, h("b", {}, one.name), ` ${one.type}`), format(one.degree))));
});

const choose = guarded(async (name, limit = AROUND) => {
  const round = ++told;
  const { entity, relations, neighbours, total } = await get(indexPath("/neighbourhood"), { name, limit });
  const center = { name: entity.name, type: entity.type, degree: total };
  const drawn = relations.map((one) => ({ ...one, predicate: listed(one.keywords) }));
  if (!drawing.add([center, ...neighbours], drawn, entity.name)) notify({ message: t("full") });
  showLegend();
  const items = drawn.map((one) => line(() => choose(one.source === entity.name ? one.target : one.source), relationWords(one)));
  const more = Math.min(limit + AROUND, MOST_AROUND);
  tell(round,
    h("h2", {}, entity.name),
    h("p", { class: "row" }, chip(entity.type),
      h("button", { class: "link", t: "sources", onclick: () => openSources({ entity: entity.name }) }),
      h("button", { class: "link", t: "history", onclick: () => showHistory(entity.name) }),
      h("button", { class: "link", t: "collapse", onclick: () => collapse(entity.name) })),
    h("p", entity.aliases.length ? { class: "soft", t: "aliases", n: listed(entity.aliases) } : { hidden: true }),
    h("p", { class: "description" }, entity.description),
    h("p", { class: "row" }, editButtons(entity, (newName) => changed(entity.name, newName)),
      h("button", { class: "link", t: "homonyms", onclick: () => showHomonyms(entity.name) })),
    h("h3", { t: "relations_n", n: `${format(items.length)} / ${format(total)}` }),
    h("ul", { class: "list" }, items),
    ...(items.length < total && limit < more ? [h("button", { t: "more_relations", onclick: () => choose(name, more) })] : []),
  );
});

function collapse(name) {
  drawing.collapse(name);
  showLegend();
}

const showLegend = () => parts.legend.replaceChildren(...drawing.types().map((type) => chip(type)));

// After a change by hand: what was drawn of the entity is drawn anew.
function changed(oldName, newName) {
  drawing.remove(oldName);
  find();
  if (newName === null) reset();
  else choose(newName);
}

function chip(type) {
  const dot = h("span", { class: "dot" });
  dot.style.background = colorOf(type);
  return h("span", { class: "chip" }, dot, type);
}
