// Ask: a conversation whose answers are streamed, with the graph of their evidence beside it.

import { events, indexPath, request, token } from "./api.js";
import { $, errorWords, guarded, h } from "./dom.js";
import { Drawing } from "./drawing.js";
import { markdown, withoutMarkers } from "./markdown.js";
import { openCitations, openSources, place } from "./passage.js";
import { keysAfter, t, translate } from "./strings.js";

let history = [];
let running;
let drawing;
let parts;

export function startAsk() {
  const filter = (name, type) => h("label", {}, h("span", { t: `filter_${name}` }), h("input", { name, type }));
  parts = {
    intro: h("div", {}, h("h1", { t: "ask_title" }), h("p", { class: "soft", t: "ask_hint" })),
    turns: h("div", { class: "turns" }),
    question: h("textarea", { rows: 2, hint: "question", label: "question", onkeydown: keyed }),
    mode: h("select", { label: "mode" }, keysAfter("mode_").map((mode) => h("option", { value: mode, t: `mode_${mode}` }))),
    send: h("button", { class: "main", t: "ask" }),
    filters: h("form", { class: "filters" }, filter("title"), filter("from", "date"), filter("to", "date")),
    canvas: h("div", { class: "canvas", role: "img", label: "graph_drawing" }),
    relations: h("ul", { class: "list" }),
    evidence: h("p", { class: "soft", t: "evidence_none" }),
  };
  const again = h("button", { type: "button", t: "new_conversation", onclick: reset });
  const controls = h("div", { class: "row" }, parts.mode, again, h("span", { class: "grow" }), parts.send);
  $("#ask").replaceChildren(
    h("div", { class: "column" }, parts.intro, parts.turns,
      h("form", { class: "composer card", onsubmit: submitted }, parts.question, controls),
      h("details", {}, h("summary", { t: "filters" }), parts.filters)),
    h("aside", { class: "side" }, h("h2", { t: "evidence" }), parts.evidence, parts.canvas, parts.relations),
  );
  drawing = new Drawing(parts.canvas, (entity) => openSources({ entity }));
  reset();
}

function reset() {
  running?.abort();
  history = [];
  parts.turns.replaceChildren();
  parts.intro.hidden = false;
  showEvidence([]);
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

async function submitted(event) {
  event.preventDefault();
  const question = parts.question.value.trim();
  if (running || !question) return running?.abort();
  const turn = {
    keywords: h("p", { class: "chips soft", t: "reading" }),
    text: h("div", { class: "answer", "aria-live": "polite" }),
    foot: h("div", { class: "foot" }),
    evidence: [],
  };
  parts.turns.append(h("article", {}, h("h2", {}, question), turn.keywords, turn.text, turn.foot));
  turn.foot.parentNode.scrollIntoView();
  parts.intro.hidden = true;
  parts.question.value = "";
  const mine = setRunning(new AbortController());
  try {
    await receive(question, turn, mine.signal);
  } catch (error) {
    const words = error.name === "AbortError" ? t("stopped") : errorWords(error);
    turn.foot.append(h("p", { class: "warn", role: "alert" }, words));
    parts.question.value ||= error.name === "AbortError" ? "" : question; // to ask it again
  }
  if (turn.keywords.dataset.t) turn.keywords.remove();
  if (mine === running) setRunning();
}

function setRunning(controller) {
  parts.send.dataset.t = controller ? "stop" : "ask";
  translate(parts.send);
  return (running = controller);
}

async function receive(question, turn, signal) {
  const asked = { question, mode: parts.mode.value, conversation_history: history, where: where() };
  for await (const [name, value] of events(indexPath("/stream"), asked, signal)) {
    if (name === "keywords") {
      const words = new Set([...value.keywords.low_level, ...value.keywords.high_level]);
      turn.keywords.replaceChildren(...[...words].map((word) => h("span", { class: "chip" }, word)));
      delete turn.keywords.dataset.t;
    } else if (name === "evidence") {
      turn.evidence = value.selected.map(({ edge, reasoning }) => ({ ...edge, reasoning }));
      showEvidence(turn.evidence);
    } else if (name === "piece") turn.text.append(value.text);
    else if (name === "answer") finish(question, turn, value);
  }
}

function finish(question, turn, answer) {
  history = [...history, { role: "user", content: question }, { role: "assistant", content: answer.text }];
  turn.text.replaceChildren(...markdown(answer.text, answer.claims, (number, claim) => citationButton(number, answer.citations, claim)));
  turn.text.classList.add("written");
  if (answer.truncated) turn.foot.append(h("p", { class: "warn", t: "cut_off" }));
  const sources = [...Map.groupBy(answer.citations, (one) => one.number)].map(([number, cited]) =>
    line(() => openCitations(shownFirst(cited)), h("span", { class: numberClass(cited) }, number),
      h("span", {}, h("b", {}, place(cited[0].document, cited[0].heading, cited[0].paged && t("page_of", cited[0].page))), cited.map(({ text, supported }) => supported && ` ${text}`), unsupportedClaims(answer, number))));
  if (sources.length) turn.foot.append(h("h3", { t: "sources" }), h("ul", { class: "list" }, sources));
  const trace = { href: answer.trace_id && indexPath(`/traces/${answer.trace_id}/page`), target: "_blank", rel: "noopener", t: "trace", onclick: guarded(openTrace) };
  const again = { class: "link", t: "show_evidence", onclick: () => showEvidence(turn.evidence) };
  turn.foot.append(h("p", { class: "row" }, h("button", again), trace.href && h("a", trace)));
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
function citationButton(number, citations, claim) {
  const cited = claim ? claim.citations.map((place) => citations[place]) : citations.filter((one) => one.number === number);
  if (!cited.length) return h("s", { class: "number" }, number);
  const supported = claim ? claim.supported : cited.every((one) => one.supported);
  const name = `${t("passage")} ${number}: ${cited[0].document}`;
  const label = supported ? name : `${name}. ${t("unsupported")}`;
  const properties = { class: supported ? "number" : "number weak", "aria-label": label, title: supported ? null : label };
  return h("button", { ...properties, onclick: () => openCitations(cited) }, number);
}

// The sentences that support a claim; without any, the passage that does not.
const shownFirst = (cited) => (cited.some(({ supported }) => supported) ? cited.filter(({ supported }) => supported) : cited);

// The claims that a number is cited for and does not support, in words.
function unsupportedClaims({ text, claims }, number) {
  const characters = [...text];
  const wrong = claims.filter((claim) => claim.number === number && !claim.supported);
  const quotes = new Set(wrong.map(({ start, end }) => withoutMarkers(characters.slice(start, end).join(""))));
  return [...quotes].map((quote) => h("span", { class: "claim" }, h("span", { t: "unsupported_claim", n: quote })));
}

const numberClass = (cited) => (cited.some(({ supported }) => supported) ? "number" : "number weak");

function showEvidence(edges) {
  const ends = Map.groupBy(edges.flatMap(({ source, target }) => [source, target]), (name) => name);
  parts.evidence.parentNode.hidden = !parts.intro.hidden;
  parts.evidence.hidden = edges.length > 0;
  parts.canvas.hidden = !edges.length;
  drawing.clear();
  drawing.add([...ends].map(([name, { length }]) => ({ name, degree: length, type: "" })), edges);
  parts.relations.replaceChildren(...edges.map((edge) =>
    line(() => openSources({ entity: edge.source, target: edge.target }), relationWords(edge))));
}

export const line = (onclick, ...children) => h("li", {}, h("button", { class: "line", onclick }, children));

export function relationWords({ source, predicate, target, reasoning }) {
  return h("span", {}, h("b", {}, source), " ", h("i", {}, predicate.replace(/^(related to)?$/, "—")), " ", h("b", {}, target), reasoning && ` — ${reasoning}`);
}
