// Documents: upload, states and failures, jobs, and how extraction went.

import { get, indexPath, post, request } from "./api.js";
import { $, guarded, h, notify } from "./dom.js";
import { format, listed, t } from "./strings.js";

const STATES = ["", "done", "partial", "failed", "pending"];
const PAGE = 25;
const JOBS = 100;
const POLL = 700; // milliseconds, while a job runs

let parts;
let offset = 0;
let polling;

export function startDocuments() {
  const files = h("input", { type: "file", multiple: true, hidden: true, onchange: () => send(files.files) });
  const choose = h("button", { class: "link", t: "choose_files", onclick: () => files.click() });
  const drop = h("div", { class: "drop card", ondragover: over, ondragleave: over, ondrop: over },
    h("p", {}, h("span", { t: "drop" }), " ", choose), h("p", { class: "soft", t: "kinds" }), files);
  const first = () => list((offset = 0));
  const options = STATES.map((state) => h("option", { value: state, t: `state_${state}` }));
  parts = {
    search: h("input", { type: "search", hint: "find_document", label: "find_document", oninput: first }),
    state: h("select", { label: "state", onchange: first }, options),
    rows: h("ul", { class: "rows" }),
    pages: h("div", { class: "row" }),
    jobs: h("ul", { class: "rows", "aria-live": "polite" }),
    noJobs: h("p", { class: "soft", t: "no_jobs" }),
    health: h("ul", { class: "facts card" }),
    retry: h("button", { t: "retry", hidden: true, onclick: guarded(() => change("/retry", {})) }),
  };
  $("#documents").replaceChildren(
    drop, h("details", {}, h("summary", { t: "jobs" }), parts.noJobs, parts.jobs),
    h("div", { class: "row" }, parts.search, parts.state, parts.retry), parts.rows, parts.pages,
    h("h2", { t: "health" }), parts.health,
  );
}

// Show everything, again and again while jobs change it; the list of jobs opens with a new one. The jobs are asked for
// first: what they have done is then in the other answers.
export const showDocuments = guarded(async (isNew = false) => {
  parts.jobs.parentNode.open ||= isNew;
  clearTimeout(polling);
  const { items } = await get(indexPath("/jobs"), { limit: JOBS });
  const [, documents] = await Promise.all([list(), status()]);
  parts.noJobs.hidden = items.length > 0;
  parts.jobs.replaceChildren(...items.sort((a, b) => (b.state === "running") - (a.state === "running")).map(job));
  const busy = items.some(({ state }) => state === "waiting" || state === "running");
  const { failed, partial, pending } = documents;
  parts.retry.hidden = !(failed || partial || (pending && !busy)); // a running job reads what is pending
  if (busy && !$("#documents").hidden) polling = setTimeout(showDocuments, POLL);
});

function over(event) {
  event.preventDefault();
  event.currentTarget.classList.toggle("over", event.type === "dragover");
  if (event.type === "drop") send(event.dataTransfer.files);
}

async function send(files) {
  for (const file of [...files]) {
    const sent = file.slice(0, 1).arrayBuffer(); // fails for a folder, which cannot be sent
    await sent.then(() => request(indexPath("/upload"), { params: { name: file.name }, file })).catch((error) => notify(error, file.name));
    showDocuments(true);
  }
}

async function change(path, body) {
  await post(indexPath(path), body);
  showDocuments(true);
}

const list = guarded(async () => {
  const params = { q: parts.search.value, state: parts.state.value, offset, limit: PAGE };
  const { total, items } = await get(indexPath("/documents"), params);
  const open = new Set([...parts.rows.querySelectorAll("details[open]")].map(({ dataset }) => dataset.id));
  parts.rows.replaceChildren(...items.map((one) => row(one, open)));
  if (!total) parts.rows.append(h("li", { class: "soft", t: "no_matches" }));
  const turn = (t, by, possible) => h("button", { t, disabled: !possible, onclick: () => list((offset += by)) });
  const buttons = [`${offset + 1}–${offset + items.length} / ${format(total)}`, turn("previous", -PAGE, offset > 0), turn("next", PAGE, offset + PAGE < total)];
  parts.pages.replaceChildren(...(total > PAGE ? buttons : []));
});

function row(one, open) {
  const title = one.title ?? one.source ?? one.id;
  const remove = { t: "delete", label: "delete_one", n: title, onclick: guarded(() => confirm(t("delete_why", title)) && change("/delete", { ids: [one.id] })) };
  const themes = listed(one.content_keywords?.slice(0, 5) ?? []);
  const facts = [one.source?.split(/[/\\]/).pop(), one.date, themes].filter(Boolean).map((fact) => h("span", {}, fact));
  return h("li", { class: "card" },
    h("div", { class: "row" }, h("b", { class: "grow" }, title), badge(one.state), h("button", remove)),
    h("p", { class: "soft facts" }, count("chunks", one.chunks), facts),
    problems(one.failures, one.id, open.has(one.id)));
}

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
  return h("div", {}, h("p", { class: "soft", t: `stage_${name}`, n: `${format(value)} / ${format(max)}` }), h("progress", { value, max }));
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
  const all = Object.values(documents).reduce((sum, one) => sum + one, 0);
  const { ok, empty, partial, failed } = extraction;
  const counts = { documents_n: all, chunks, entities, relations_n: relations, ok, empty, partial, failed };
  if (reading.read === "asked") {
    for (const key of ["chunks_read", "chunks_unread", "tokens_for_rest"]) counts[key] = reading[key];
  }
  const refused = Object.entries(extraction.rejections).map(([reason, n]) =>
    h("li", {}, h("span", { t: "refused" }), ` (${reason.replaceAll("_", " ")}): ${format(n)}`));
  parts.health.replaceChildren(...Object.entries(counts).map(([key, n]) => h("li", {}, count(key, n))), ...refused);
  return documents;
}
