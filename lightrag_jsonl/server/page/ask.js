// Ask: a conversation whose answers are streamed, with the graph of their evidence beside it.

import { current, events, get, indexPath, request, token } from "./api.js";
import { $, Busy, errorWords, guarded, h, withTip } from "./dom.js";
import { Drawing } from "./drawing.js";
import { markdown, withoutMarkers } from "./markdown.js";
import { openCitations, openSources, place } from "./passage.js";
import { keysAfter, listed, t, translate } from "./strings.js";

const MOST_TURNS = 30; // that survive a reload
const COPIED = 2000; // milliseconds for which a button says so

let turns = []; // {question, answer, evidence} of each answered question
let running;
let drawing;
let parts;

export function startAsk() {
  const filter = (name, type) => h("label", {}, h("span", { t: `filter_${name}` }), h("input", { name, type }));
  parts = {
    intro: h("div", {}, h("h1", { t: "ask_title" }), h("p", { class: "soft", t: "ask_hint" })),
    turns: h("div", { class: "turns" }),
    model: h("p", { class: "soft" }),
    question: h("textarea", { rows: 2, hint: "question", label: "question", onkeydown: keyed }),
    mode: h("select", { label: "mode" }, keysAfter("mode_").map((mode) => h("option", { value: mode, t: `mode_${mode}` }))),
    send: h("button", { class: "main", t: "ask" }),
    filters: h("form", { class: "filters" }, filter("title"), filter("from", "date"), filter("to", "date"), filter("as_of", "text")),
    canvas: h("div", { class: "canvas", role: "img", label: "graph_drawing" }),
    relations: h("ul", { class: "list" }),
    others: h("ul", { class: "list" }),
    evidence: h("p", { class: "soft", t: "evidence_none" }),
  };
  const again = h("button", { type: "button", t: "new_conversation", onclick: reset });
  const controls = h("div", { class: "row" }, parts.mode, again, parts.send);
  $("#ask").replaceChildren(
    h("div", { class: "column" }, parts.intro, parts.turns,
      h("form", { class: "composer card", onsubmit: submitted }, parts.question, controls, parts.model),
      h("details", {}, h("summary", { t: "filters" }), parts.filters)),
    h("aside", { class: "side" }, h("h2", { t: "evidence" }), parts.evidence, parts.canvas, parts.relations, h("details", { hidden: true }, h("summary", { t: "also_found" }), parts.others)),
  );
  drawing = new Drawing(parts.canvas, (entity) => openSources({ entity }));
  showEvidence([]);
}

// Once the index is known: the conversation as it was before a reload, and which model answers.
export const showAsk = guarded(async () => {
  restore();
  const { llm } = await get(indexPath(""));
  parts.model.replaceChildren(h("span", llm === "none" ? { t: "no_model" } : { t: "model_is", n: llm }));
});

const storageKey = () => `conversation ${current.index}`;

function restore() {
  if (turns.length) return;
  for (const { question, answer, evidence } of JSON.parse(sessionStorage.getItem(storageKey()) ?? "[]")) {
    finish(question, addTurn(question, evidence), answer);
  }
  if (turns.length) showEvidence(turns.at(-1).evidence);
}

function remember() {
  try {
    sessionStorage.setItem(storageKey(), JSON.stringify(turns.slice(-MOST_TURNS)));
  } catch { // the browser keeps no more
    sessionStorage.removeItem(storageKey());
  }
}

function reset() {
  running?.abort();
  turns = [];
  remember();
  parts.turns.replaceChildren();
  parts.intro.hidden = false;
  showEvidence([]);
}

const history = () => turns.flatMap(({ question, answer }) => [{ role: "user", content: question }, { role: "assistant", content: answer.text }]);

function addTurn(question, evidence = []) {
  const turn = {
    keywords: h("p", { class: "chips soft" }),
    text: h("div", { class: "answer", "aria-live": "polite" }),
    foot: h("div", { class: "foot" }),
    evidence,
  };
  parts.turns.append(h("article", {}, h("h2", {}, question), turn.keywords, turn.text, turn.foot));
  parts.intro.hidden = true;
  return turn;
}

function keyed(event) {
  if (event.key === "Escape") running?.abort();
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  event.target.form.requestSubmit();
}

function where() {
  const { title, from, to } = Object.fromEntries(new FormData(parts.filters));
  const date = { ...(from && { $gte: from }), ...(to && { $lte: `${to}T99` }) };
  return { ...(title && { title }), ...((from || to) && { date }) };
}

const asOf = () => new FormData(parts.filters).get("as_of").trim() || null;

async function submitted(event) {
  event.preventDefault();
  const question = parts.question.value.trim();
  if (running || !question) return running?.abort();
  const turn = addTurn(question);
  turn.busy = new Busy("reading");
  turn.foot.append(turn.busy.element);
  turn.foot.parentNode.scrollIntoView();
  parts.question.value = "";
  const mine = setRunning(new AbortController());
  try {
    await receive(question, turn, mine.signal);
  } catch (error) {
    const words = error.name === "AbortError" ? t("stopped") : errorWords(error);
    turn.foot.append(h("p", { class: "warn", role: "alert" }, words));
    parts.question.value ||= error.name === "AbortError" ? "" : question; // to ask it again
  }
  turn.busy.end();
  if (mine === running) setRunning();
}

function setRunning(controller) {
  parts.send.dataset.t = controller ? "stop" : "ask";
  translate(parts.send);
  return (running = controller);
}

async function receive(question, turn, signal) {
  const asked = { question, mode: parts.mode.value, conversation_history: history(), where: where(), as_of: asOf() };
  for await (const [name, value] of events(indexPath("/stream"), asked, signal)) {
    if (name === "keywords") {
      const words = new Set([...value.keywords.low_level, ...value.keywords.high_level]);
      turn.keywords.replaceChildren(...[...words].map((word) => h("span", { class: "chip" }, word)));
      turn.busy.say("ranking");
    } else if (name === "evidence") {
      turn.evidence = value.selected.map(({ edge, reasoning }) => ({ ...edge, reasoning }));
      turn.busy.say("writing");
    } else if (name === "piece") turn.text.append(value.text);
    else if (name === "answer") finish(question, turn, value);
  }
}

function finish(question, turn, answer) {
  const cited = new Set(answer.citations.map(({ chunk_id }) => chunk_id));
  turn.evidence = turn.evidence.map((edge) => ({ ...edge, cited: edge.chunk_ids.some((id) => cited.has(id)) }));
  showEvidence(turn.evidence);
  turns.push({ question, answer, evidence: turn.evidence });
  remember();
  turn.text.replaceChildren(...markdown(answer.text, answer.claims, (number, claim) => citationButton(number, answer, claim)));
  turn.text.classList.add("written");
  if (answer.truncated) turn.foot.append(h("p", { class: "warn", t: "cut_off" }));
  if (answer.claims.some(({ supported }) => !supported)) turn.foot.append(h("p", { class: "soft", t: "mark_meaning" }));
  const sources = [...Map.groupBy(answer.citations, (one) => one.number)].map(([number, cited]) =>
    line(() => openCitations(shownFirst(cited)), h("span", { class: numberClass(cited) }, number),
      h("span", {}, h("b", {}, place(cited[0].document, cited[0].heading, cited[0].paged && t("page_of", cited[0].page))), cited.map(({ text, supported }) => supported && ` ${text}`), unsupportedClaims(answer, number))));
  if (sources.length) turn.foot.append(h("h3", { t: "sources" }), h("ul", { class: "list" }, sources));
  if (answer.notice) turn.foot.prepend(h("p", { class: "soft" }, answer.notice));
  turn.foot.append(...(answer.uncited ?? []).map((line) => h("p", { class: "warn" }, line)));
  const trace = { href: answer.trace_id && indexPath(`/traces/${answer.trace_id}/page`), target: "_blank", rel: "noopener", t: "trace", onclick: guarded(openTrace) };
  const evidence = { class: "link", t: "show_evidence", onclick: () => showEvidence(turn.evidence) };
  turn.foot.append(h("p", { class: "row" }, copyButton(answer), sourceButton(turn, answer), h("button", evidence), trace.href && h("a", trace)));
}

// The answer with the list of its sources, for the clipboard.
function copyButton(answer) {
  const text = [answer.text, answer.notice, [...answer.sources, ...(answer.uncited ?? [])].join("\n")].filter(Boolean).join("\n\n");
  const button = h("button", { class: "link", t: "copy" });
  const say = (key) => {
    button.dataset.t = key;
    translate(button);
  };
  button.addEventListener("click", guarded(async () => {
    await writeClipboard(text);
    say("copied");
    setTimeout(say, COPIED, "copy");
  }));
  return button;
}

// Browsers offer the clipboard to pages of this machine and of https only; elsewhere a selection is copied.
async function writeClipboard(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = h("textarea", { class: "offscreen" });
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

// Show the answer as the model wrote it, and back.
function sourceButton(turn, answer) {
  const source = h("pre", { class: "source", hidden: true }, answer.text);
  turn.text.after(source);
  const button = h("button", { class: "link", t: "source", "aria-pressed": "false", onclick: () => {
    source.hidden = !source.hidden;
    turn.text.hidden = !source.hidden;
    button.ariaPressed = String(!source.hidden);
  } });
  return button;
}

// A link cannot send the token: the page is fetched with it, and opened from memory.
async function openTrace(event) {
  if (!token()) return;
  event.preventDefault();
  const tab = open();
  const page = await (await request(new URL(event.target.href).pathname)).blob();
  tab.location = URL.createObjectURL(page);
}

// The button of a number: it shows what its claim rests on, and says if that is nothing.
function citationButton(number, answer, claim) {
  const { citations } = answer;
  const cited = claim ? claim.citations.map((place) => citations[place]) : citations.filter((one) => one.number === number);
  if (!cited.length) return h("s", { class: "number" }, number);
  const supported = claim ? claim.supported : cited.every((one) => one.supported);
  const name = `${t("passage")} ${number}: ${cited[0].document}`;
  if (supported) return h("button", { class: "number", "aria-label": name, onclick: () => openCitations(cited) }, number);
  const quote = claim ? wordsOf(answer.text, claim) : "";
  const key = claim ? "unsupported_claim" : "unsupported";
  const button = h("button", { class: "number weak", "aria-label": `${name}. ${t(key, quote)}`, onclick: () => openCitations(cited) }, number);
  return withTip(button, key, quote);
}

// Places of the server count characters, and not UTF-16 units.
const wordsOf = (text, { start, end }) => withoutMarkers([...text].slice(start, end).join(""));

// The sentences that support a claim; without any, the passage that does not.
const shownFirst = (cited) => (cited.some(({ supported }) => supported) ? cited.filter(({ supported }) => supported) : cited);

// The claims that a number is cited for and does not support, in words.
function unsupportedClaims({ text, claims }, number) {
  const wrong = claims.filter((claim) => claim.number === number && !claim.supported);
  const quotes = new Set(wrong.map((claim) => wordsOf(text, claim)));
  return [...quotes].map((quote) => h("span", { class: "claim" }, h("span", { t: "unsupported_claim", n: quote })));
}

const numberClass = (cited) => (cited.some(({ supported }) => supported) ? "number" : "number weak");

// The relations in cited passages; what was found besides is behind a heading of its own.
function showEvidence(found) {
  const edges = found.filter(({ cited }) => cited);
  const ends = Map.groupBy(edges.flatMap(({ source, target }) => [source, target]), (name) => name);
  parts.evidence.parentNode.hidden = !parts.intro.hidden;
  parts.evidence.hidden = edges.length > 0;
  parts.canvas.hidden = !edges.length;
  drawing.clear();
  drawing.add([...ends].map(([name, { length }]) => ({ name, degree: length, type: "" })), edges);
  const lines = (relations) => relations.map((edge) =>
    line(() => openSources({ entity: edge.source, target: edge.target }), relationWords(edge)));
  parts.relations.replaceChildren(...lines(edges));
  parts.others.replaceChildren(...lines(found.filter(({ cited }) => !cited)));
  parts.others.parentNode.hidden = edges.length === found.length;
}

export const line = (onclick, ...children) => h("li", {}, h("button", { class: "line", onclick }, children));

export function relationWords({ source, predicate, target, reasoning }) {
  return h("span", {}, h("b", {}, source), " ", h("i", {}, listed(predicate.split(", ")).replace(/^(related to)?$/, "—")), " ", h("b", {}, target), reasoning && ` — ${reasoning}`);
}
