// Documents: what is added, the table of documents, one document with its passages, jobs, and how extraction went.

import { get, indexPath, post } from "./api.js";
import { $, guarded, h } from "./dom.js";
import { headingBelow } from "./passage.js";
import { go, linkTo, route } from "./route.js";
import { format, listed, t } from "./strings.js";
import { dropZone, Progress } from "./uploads.js";

const STATES = ["", "done", "partial", "failed", "pending"];
const PAGE = 50;
const PASSAGES = 20; // of a document that are shown at once
const TROUBLES = ["empty", "partial", "failed"]; // which are named only where there are some
const FEW = 3; // files, whose jobs are shown one by one

let parts;
let progress;
let offset = 0;

export function startDocuments() {
  const first = () => list((offset = 0));
  const options = STATES.map((state) => h("option", { value: state, t: `state_${state}` }));
  parts = {
    search: h("input", { type: "search", hint: "find_document", label: "find_document", oninput: first }),
    state: h("select", { label: "state", onchange: first }, options),
    all: h("input", { type: "checkbox", label: "select_all", onchange: ({ target }) => select(target.checked) }),
    rows: h("tbody", {}),
    none: h("p", { class: "soft", hidden: true }),
    pages: h("div", { class: "row" }),
    reading: h("div", {}),
    jobs: h("ul", { class: "rows", "aria-live": "polite" }),
    health: h("ul", { class: "facts card" }),
    remove: h("button", { t: "delete_selected", hidden: true, onclick: guarded(() => removeSelected()) }),
    retry: h("button", { t: "retry", hidden: true, onclick: guarded(() => change("/retry", {})) }),
    one: h("article", { class: "column", hidden: true }),
  };
  const head = ["name", "kind", "size", "state", "date"].map((key) => h("th", { scope: "col", t: key }));
  parts.table = h("div", { class: "rows" },
    h("div", { class: "row" }, parts.search, parts.state, parts.remove, parts.retry),
    h("div", { class: "wide" }, h("table", { class: "documents" }, h("thead", {}, h("tr", {}, h("td", {}, parts.all), head)), parts.rows)),
    parts.none, parts.pages, h("h2", { t: "health" }), parts.health);
  parts.list = h("div", { class: "rows" },
    h("h1", { class: "offscreen", t: "documents" }),
    dropZone(h("p", { t: "drop" }), (count) => showList(count)), parts.reading,
    h("details", { hidden: true }, h("summary", { t: "jobs" }), parts.jobs),
    parts.table);
  $("#documents").replaceChildren(parts.list, parts.one);
  progress = new Progress(parts.reading, seen);
}

// The list, or the document that the address names.
export const showDocuments = guarded(async ([id] = []) => {
  parts.list.hidden = Boolean(id);
  parts.one.hidden = !id;
  await (id ? showOne(id) : showList());
});

// Show everything, again and again while jobs change it; the jobs of a few new files are shown one by one. The jobs are
// asked for first: what they have done is then in the other answers.
async function showList(added = 0) {
  parts.jobs.parentNode.open ||= added > 0 && added <= FEW;
  await progress.look();
}

async function seen(items, open) {
  const [, documents] = await Promise.all([list(), status()]);
  parts.jobs.parentNode.hidden = !items.length;
  parts.jobs.replaceChildren(...items.sort((a, b) => (b.state === "running") - (a.state === "running")).map(job));
  const { failed, partial, pending } = documents;
  parts.retry.hidden = !(failed || partial || (pending && !open)); // a running job reads what is pending
}

async function change(path, body) {
  await post(indexPath(path), body);
  if (route().parts.length) go("documents");
  else showList(1);
}

const list = guarded(async () => {
  const params = { q: parts.search.value, state: parts.state.value, offset, limit: PAGE };
  const { total, items } = await get(indexPath("/documents"), params);
  const chosen = new Set(selected());
  const open = new Set([...parts.rows.querySelectorAll("details[open]")].map(({ dataset }) => dataset.id));
  const namesakes = new Set(items.map(titleOf).filter((title, at, titles) => titles.indexOf(title) !== at));
  parts.rows.replaceChildren(...items.map((one) => row(one, chosen, open, namesakes.has(titleOf(one)))));
  parts.table.hidden = !total && !params.q && !params.state;
  parts.none.hidden = total > 0;
  parts.none.replaceChildren(h("span", { t: "no_matches" }));
  const turn = (t, by, possible) => h("button", { t, disabled: !possible, onclick: () => list((offset += by)) });
  const last = Math.ceil(total / PAGE);
  const number = h("input", { type: "number", min: 1, max: last, value: offset / PAGE + 1, label: "page_number", onchange: ({ target }) => target.validity.valid && target.value && list((offset = (target.value - 1) * PAGE)) });
  const buttons = [turn("previous", -PAGE, offset > 0), number, `/ ${format(last)}`, turn("next", PAGE, offset + PAGE < total), h("span", { class: "soft" }, `${format(offset + 1)}–${format(offset + items.length)} / ${format(total)}`)];
  parts.pages.replaceChildren(...(total > PAGE ? buttons : []));
  choose();
});

const boxes = () => [...parts.rows.querySelectorAll("input")];

const selected = () => boxes().filter(({ checked }) => checked).map(({ value }) => value);

function select(isChosen) {
  for (const box of boxes()) box.checked = isChosen;
  choose();
}

// The button for what is selected.
function choose() {
  const count = selected().length;
  parts.all.checked = count > 0 && count === boxes().length;
  parts.remove.hidden = !count;
  parts.remove.replaceWith((parts.remove = h("button", { t: "delete_selected", n: format(count), hidden: !count, onclick: guarded(() => removeSelected()) })));
}

function removeSelected() {
  const ids = selected();
  return remove(ids, ids.length === 1 ? t("delete_why", parts.rows.querySelector("input:checked").dataset.title) : t("delete_selected_why", format(ids.length)));
}

const remove = (ids, question) => confirm(question) && change("/delete", { ids });

const titleOf = ({ title, source, id }) => title ?? source ?? id;

const fileName = (source) => source?.split(/[/\\]/).pop() ?? "";

// The kind of a file, by the end of its name.
const kindOf = ({ source }) => /\.([a-z0-9]{1,5})$/i.exec(fileName(source))?.[1].toLowerCase() ?? "";

// A document in the table; where others have its title, its file or id tells them apart.
function row(one, chosen, open, isNamesake) {
  const title = titleOf(one);
  const file = fileName(one.source) || (isNamesake ? one.id : "");
  const box = h("input", { type: "checkbox", value: one.id, label: "select_one", n: title, "data-title": title, onchange: choose });
  box.checked = chosen.has(one.id);
  return h("tr", {}, h("td", {}, box),
    h("td", {}, h("a", { href: linkTo("documents", one.id) }, title), file !== title && h("span", { class: isNamesake ? "soft small block" : "soft small file" }, file), one.date && h("span", { class: "soft small narrow" }, one.date), problems(one.failures, one.id, open.has(one.id))),
    h("td", {}, kindOf(one) || h("span", { t: "kind_text" })), h("td", { class: "number-cell" }, format(one.characters)), h("td", {}, badge(one.state)), h("td", {}, one.date ?? ""));
}

// A document: what is known of it, and its passages.
const showOne = guarded(async (id, limit = PASSAGES) => {
  const { document: one, total, chunks } = await get(indexPath("/text"), { id, limit });
  const title = titleOf(one);
  document.title = `${title} · ${t("documents")}`;
  const themes = listed(one.content_keywords?.slice(0, 5) ?? []);
  const facts = [kindOf(one), one.source, one.date, themes].filter(Boolean).map((fact) => h("span", {}, fact));
  const heading = (chunk, before) => {
    const isInText = chunk.text.trimStart().startsWith("#"); // of Markdown
    const words = chunk.heading !== before?.heading && !isInText && headingBelow(title, chunk.heading);
    return words && h("h2", {}, words);
  };
  parts.one.replaceChildren(
    h("p", {}, h("a", { href: "#documents", t: "back_to_list" })),
    h("h1", {}, title),
    h("p", { class: "soft facts" }, badge(one.state), h("span", { t: "size_n", n: format(one.characters) }), h("span", { t: "passages_of", n: format(total) }), facts),
    problems(one.failures) ?? "",
    h("div", { class: "rows" }, chunks.map((chunk, at) => h("section", {}, heading(chunk, chunks[at - 1]), h("p", { class: "whole" }, chunk.text)))),
    h("p", { class: "row" },
      chunks.length < total && h("button", { t: "more_passages", onclick: () => showOne(id, Math.min(limit * 5, 500)) }),
      h("button", { class: "link", t: "delete", label: "delete_one", n: title, onclick: guarded(() => remove([id], t("delete_why", title))) })));
});

const badge = (state) => h("span", { class: `badge ${state}`, t: `state_${state}` });

const count = (key, number) => h("span", { t: key, n: format(number) });

function problems(failures = [], id = "", open = false) {
  if (!failures.length) return null;
  const reasons = [...new Set(failures.map(({ reason }) => reason))].map((reason) => h("li", {}, reason));
  return h("details", { class: "warn", "data-id": id, open }, h("summary", { t: "failures", n: failures.length }),
    h("ul", {}, reasons));
}

function job({ id, kind, about, state, progress, error, report }) {
  const isOpen = state === "waiting" || state === "running";
  const button = (t, path) => h("button", { t, onclick: guarded(() => change(`/jobs/${id}/${path}`, {})) });
  return h("li", { class: "card" },
    h("div", { class: "row" }, h("span", { class: "grow", t: `job_${kind}`, n: about.name ?? "" }), badge(state),
      (isOpen || state === "failed") && button("cancel_job", "cancel"), state === "failed" && button("retry_job", "retry")),
    state === "running" && stage(progress),
    costs(isOpen ? progress.usage : report.usage),
    error && h("p", { class: isOpen ? "soft" : "warn" }, error),
    report.unchanged?.length > 0 && h("p", { class: "soft", t: "unchanged" }),
    problems(report.failures));
}

// The step of a running job, in words and as a bar: reading, then what makes documents visible.
function stage({ chunks_done, chunks_known, steps = {} }) {
  const [name, [value, max]] = Object.entries(steps)[0] ?? ["reading", [chunks_done, chunks_known]];
  if (!max) return h("progress", { label: "stage_starting" });
  return h("div", {}, h("p", { class: "soft", t: `stage_${name}`, n: `${format(value)} / ${format(max)}` }), h("progress", { value, max, label: `stage_${name}` }));
}

// What a job has cost so far; nothing for a job without a model.
function costs(usage) {
  if (!usage?.calls) return null;
  const tokens = usage.input_tokens + usage.output_tokens;
  return h("p", { class: "soft facts" }, count("model_calls", usage.calls), count("tokens", tokens));
}

// Show the totals; returns the number of documents in each state.
async function status() {
  const { documents, chunks, entities, relations, extraction, reading } = await get(indexPath(""));
  const cost = extraction.usage.calls ? await get(indexPath("/cost")) : null;
  const all = Object.values(documents).reduce((sum, one) => sum + one, 0);
  const { ok, empty, partial, failed, usage } = extraction;
  const counts = { documents_n: all, chunks, entities, relations_n: relations, ok, empty, partial, failed };
  if (reading.read === "asked") {
    for (const key of ["chunks_read", "chunks_unread", "tokens_for_rest"]) counts[key] = reading[key];
  }
  if (usage.calls) Object.assign(counts, { model_calls: usage.calls, tokens: usage.input_tokens + usage.output_tokens });
  const refused = Object.entries(extraction.rejections).map(([reason, n]) =>
    h("li", {}, h("span", { t: "refused", n: format(n) }), " · ", h("span", { t: `refused_${reason}` })));
  const told = Object.entries(counts).filter(([key, n]) => n || !TROUBLES.includes(key));
  parts.health.replaceChildren(...told.map(([key, n]) => h("li", {}, count(key, n))),
    ...(cost ? [h("li", { t: "cost", n: `${cost.amount.toFixed(4)} ${cost.currency}` })] : []), ...refused);
  return documents;
}
