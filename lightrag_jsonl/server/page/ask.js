// Ask: conversations whose answers are streamed, with the graph of their evidence beside them.

import { current, events, get, indexPath, request, token } from "./api.js";
import { Beginning } from "./begin.js";
import { $, Busy, errorWords, guarded, h, inform, withTip } from "./dom.js";
import { Drawing } from "./drawing.js";
import { markdown, plain } from "./markdown.js";
import { differing, headingBelow, openCitations, openSources, place } from "./passage.js";
import { go, linkTo, route } from "./route.js";
import { modelLine } from "./settings.js";
import { format, listed, STATING_NOTHING, t, translate } from "./strings.js";

const MOST_TURNS = 30; // of a conversation that are kept
const MOST_CONVERSATIONS = 20; // likewise
const COPIED = 2000; // milliseconds for which a button says so

let turns = []; // {question, answer, evidence, searched} of each answered question
let conversation = ""; // the id of the one that is shown; "" before its first question
let running;
let drawing;
let beginning;
let parts;

export function startAsk() {
  const filter = (name, type) => h("label", {}, h("span", { t: `filter_${name}` }), h("input", { name, type }));
  const mode = h("select", { label: "mode" });
  parts = {
    intro: h("div", { class: "intro" }),
    heading: h("h1", { class: "offscreen", t: "ask", hidden: true }),
    earlier: h("div", {}),
    turns: h("div", { class: "turns" }),
    model: h("p", { class: "soft small grow" }),
    question: h("textarea", { rows: 1, hint: "question", label: "question", onkeydown: keyed }),
    mode,
    send: h("button", { class: "main", t: "ask" }),
    filters: h("form", { class: "filters" }, h("label", {}, h("span", { t: "mode" }), mode), filter("title"), filter("from", "date"), filter("to", "date"), filter("as_of", "text")),
    canvas: h("div", { class: "canvas", role: "img", label: "graph_drawing" }),
    relations: h("ul", { class: "list" }),
    others: h("ul", { class: "list" }),
    evidence: h("p", { class: "soft", t: "evidence_none" }),
  };
  parts.again = h("button", { type: "button", t: "new_conversation", hidden: true, onclick: () => go("ask") });
  parts.composer = h("form", { class: "composer card", onsubmit: submitted }, parts.question,
    h("div", { class: "row" }, parts.model, parts.again, parts.send));
  $("#ask").replaceChildren(
    h("div", { class: "column" }, parts.heading, parts.intro, parts.turns, parts.composer,
      h("details", {}, h("summary", { t: "filters" }), parts.filters), parts.earlier),
    h("aside", { class: "side", label: "evidence" }, h("h2", { t: "evidence" }), parts.evidence, parts.canvas, parts.relations, h("details", { hidden: true }, h("summary", { t: "also_found" }), parts.others)),
  );
  drawing = new Drawing(parts.canvas, (entity) => openSources({ entity }));
  beginning = new Beginning(parts.intro, ask, () => showAsk(route().parts));
  showEvidence([]);
}

// The modes to choose from, the default first.
export function showModes(modes) {
  parts.mode.replaceChildren(...modes.map((name) => h("option", { value: name, t: `mode_${name}` })));
}

// Once the index is known: the conversation that the address names, or a new one, and which model answers.
export const showAsk = guarded(async ([id = "", turn] = []) => {
  if (id !== conversation) restore(id);
  const title = turns[0]?.question;
  if (title) document.title = `${title} · ${current.index}`;
  if (turn) $(`#turn-${turn}`)?.scrollIntoView();
  showModel();
  if (parts.turns.children.length) return;
  showEarlier();
  const isFilled = await beginning.show();
  for (const node of [parts.composer, parts.composer.nextSibling]) node.hidden = isFilled === false;
});

const showModel = guarded(async () => parts.model.replaceChildren(...(await modelLine(showModel))));

const storageKey = () => `conversations ${current.index}`;

// The conversations of this index that this browser keeps, the newest first: {id, turns}.
const kept = () => JSON.parse(localStorage.getItem(storageKey()) ?? "[]");

function keep(conversations) {
  for (let count = MOST_CONVERSATIONS; count > 0; count--) {
    try {
      return localStorage.setItem(storageKey(), JSON.stringify(conversations.slice(0, count)));
    } catch { // the browser keeps no more
    }
  }
}

function remember() {
  if (!conversation) {
    conversation = Date.now().toString(36);
    history.replaceState(null, "", linkTo("ask", conversation));
    $('nav a[data-t="ask"]').setAttribute("href", location.hash);
  }
  const others = kept().filter(({ id }) => id !== conversation);
  keep([{ id: conversation, turns: turns.slice(-MOST_TURNS) }, ...others]);
}

// Show a conversation of this browser; a new one for an unknown id.
function restore(id) {
  running?.abort();
  const stored = kept().find((one) => one.id === id)?.turns ?? [];
  conversation = stored.length ? id : "";
  turns = [];
  parts.turns.replaceChildren();
  parts.heading.hidden = true;
  parts.intro.hidden = false;
  parts.again.hidden = true;
  for (const { question, answer, evidence, searched } of stored) {
    const turn = addTurn(question, evidence);
    showSearched(turn, searched);
    finish(question, turn, answer);
  }
  showEvidence(turns.at(-1)?.evidence ?? []);
}

// Links to the conversations before, and a way to forget them.
function showEarlier() {
  const earlier = kept();
  const forget = () => {
    localStorage.removeItem(storageKey());
    showEarlier();
  };
  parts.earlier.replaceChildren(...(earlier.length ? [
    h("h2", { t: "earlier" }),
    h("ul", { class: "list links" }, earlier.map(({ id, turns: [first] }) => h("li", {}, h("a", { href: linkTo("ask", id) }, first.question)))),
    h("button", { class: "link", t: "forget", onclick: forget })] : []));
}

function ask(question) {
  parts.question.value = question;
  parts.composer.requestSubmit();
}

const conversationHistory = () => turns.flatMap(({ question, answer }) => [{ role: "user", content: question }, { role: "assistant", content: answer.text }]);

function addTurn(question, evidence = []) {
  const turn = {
    searched: h("p", { class: "soft small", hidden: true }),
    keywords: h("p", { class: "chips soft" }),
    text: h("div", { class: "answer", "aria-live": "polite" }),
    foot: h("div", { class: "foot" }),
    evidence,
  };
  const number = parts.turns.children.length + 1;
  parts.turns.append(h("article", { id: `turn-${number}` }, h("h2", {}, question), turn.searched, turn.keywords, turn.text, turn.foot));
  turn.number = number;
  parts.heading.hidden = false;
  parts.intro.hidden = true;
  parts.again.hidden = false;
  parts.earlier.replaceChildren();
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
  const date = { ...(from && { $gte: from }), ...(to && { $lte: to }) };
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
  const asked = { question, mode: parts.mode.value, conversation_history: conversationHistory(), where: where(), as_of: asOf() };
  for await (const [name, value] of events(indexPath("/stream"), asked, signal)) {
    if (name === "keywords") {
      const words = new Set([...value.keywords.low_level, ...value.keywords.high_level]);
      showSearched(turn, value.keywords.question);
      turn.keywords.replaceChildren(...[...words].map((word) => h("span", { class: "chip" }, word)));
      turn.busy.say("ranking");
    } else if (name === "progress") turn.busy.say("reading_chunks", `${value.chunks_done} / ${value.chunks_known}`);
    else if (name === "reading") turn.busy.say("ranking");
    else if (name === "evidence") {
      turn.evidence = value.selected.map(({ edge, reasoning }) => ({ ...edge, reasoning }));
      turn.busy.say("writing");
    } else if (name === "piece") turn.text.append(value.text);
    else if (name === "answer") finish(question, turn, value);
  }
}

// What a question that leans on the conversation was understood as: the text that was searched for.
function showSearched(turn, text = "") {
  turn.searchedFor = text;
  turn.searched.hidden = !text;
  turn.searched.replaceChildren(h("span", { t: "searched_for", n: text }));
}

function finish(question, turn, answer) {
  turn.evidence = withCited(answer.evidence, turn.evidence);
  showEvidence(turn.evidence);
  turns.push({ question, answer, evidence: turn.evidence, searched: turn.searchedFor });
  remember();
  const uncited = answer.uncited.map((claim) => ({ ...claim, marker: claim.end, added: true }));
  turn.text.replaceChildren(...markdown(answer.text, [...answer.claims, ...uncited], (number, claim) => citationButton(number, answer, claim)));
  turn.text.classList.add("written");
  const { chunk_ids = [], usage, problem } = answer.reading ?? {};
  if (chunk_ids.length) turn.foot.append(h("p", { class: "soft" }, t("read_for_question", format(chunk_ids.length)), " ", t("tokens", format(usage.input_tokens + usage.output_tokens))));
  if (problem) turn.foot.append(h("p", { class: "warn" }, t("unread", problem)));
  if (answer.truncated) turn.foot.append(h("p", { class: "warn", t: "cut_off" }));
  const marked = [...answer.claims, ...answer.uncited].filter(isMarked);
  if (marked.length) turn.foot.append(h("h3", { t: "marked_claims" }), h("ul", { class: "list compared" }, distinct(marked).map((claim) => h("li", {}, comparison(answer, claim)))));
  const sources = [...Map.groupBy(answer.citations, (one) => one.number)].map(([number, cited]) =>
    h("li", {}, h("button", { class: "source-card", onclick: () => openCitations(cited) }, h("span", { class: "number" }, number), sourceWords(cited))));
  if (sources.length) turn.foot.append(h("h3", { t: "sources" }), h("ul", { class: "cards" }, sources));
  if (answer.notice) turn.foot.prepend(h("p", { class: "soft" }, answer.notice));
  const nearest = answer.uncited.filter((claim) => claim.nearest).map((claim) =>
    line(() => openClaim(answer, claim), h("span", { class: "number near" }, `≈${claim.number}`), sourceWords([claim.nearest])));
  if (answer.uncited.length && !sources.length) turn.foot.append(h("p", { class: "warn", t: "cites_nothing" }));
  if (nearest.length) turn.foot.append(h("details", { open: !sources.length }, h("summary", { t: "nearest" }), h("p", { class: "soft", t: "nearest_meaning" }), h("ul", { class: "list" }, nearest)));
  const trace = { href: answer.trace_id && indexPath(`/traces/${answer.trace_id}/page`), target: "_blank", rel: "noopener", t: "trace", onclick: guarded(openTrace) };
  const evidence = { class: "link", t: "show_evidence", onclick: () => showEvidence(turn.evidence).scrollIntoView({ block: "nearest" }) };
  turn.foot.append(h("p", { class: "row" }, copyButton(answer), linkButton(turn), sourceButton(turn, answer), h("button", evidence), trace.href && h("a", trace)));
}

// A link to the answer, which leads here again in this browser.
function linkButton({ number }) {
  const link = () => linkTo("ask", conversation, String(number));
  return h("button", { class: "link", t: "link", onclick: guarded(async () => {
    await writeClipboard(new URL(link(), location.href).href);
    inform(t("link_copied"));
  }) });
}

// The relations in the cited passages, and then what else was found.
function withCited(cited, found) {
  const pair = ({ source, target }) => [source, target].sort().join("\n");
  const pairs = new Set(cited.map(pair));
  const reasons = new Map(found.map((edge) => [pair(edge), edge.reasoning]));
  return [
    ...cited.map(({ source, target, keywords }) => ({ source, target, predicate: keywords.join(", "), reasoning: reasons.get(pair({ source, target })), cited: true })),
    ...found.filter((edge) => !pairs.has(pair(edge))).map((edge) => ({ ...edge, cited: false }))];
}

// The answer with the list of its sources, for the clipboard.
function copyButton(answer) {
  const text = [answer.text, answer.notice, [...answer.sources, ...answer.notes].join("\n")].filter(Boolean).join("\n\n");
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

// The button of a number: it shows the sentence nearest to its claim, and says why the claim is marked.
function citationButton(number, answer, claim) {
  const cited = claim ? citedBy(answer, claim) : answer.citations.filter((one) => one.number === number);
  if (!cited.length) return claim?.added ? h("span", {}) : h("s", { class: "number" }, number);
  const name = claim?.added ? t("nearest_to", cited[0].document) : `${t("passage")} ${number}: ${cited[0].document}`;
  const label = claim?.added ? `≈${number}` : number;
  const kind = claim?.added ? "number near" : "number";
  const onclick = () => (claim ? openClaim(answer, claim) : openCitations(cited));
  if (!claim || !isMarked(claim)) return h("button", { class: kind, "aria-label": name, onclick }, label);
  const [key, n] = why(claim);
  const button = h("button", { class: `${kind} ${claim.verdict}`, "aria-label": `${name}. ${t(key, n)}`, onclick }, label);
  return withTip(button, key, n);
}

const isMarked = ({ verdict }) => ["missing", "compare", "unsupported"].includes(verdict);

const citedBy = (answer, claim) => (claim.citations ? claim.citations.map((at) => answer.citations[at]) : [claim.nearest].filter(Boolean));

// Why a claim is marked: the key of the words, and the reason in them.
const why = ({ verdict, reason }) => [`why_${verdict}`, reason];

// The claims of different sentences: several numbers of one share a verdict.
const distinct = (claims) => [...new Map(claims.map((claim) => [`${claim.start} ${claim.end}`, claim])).values()];

// The passages behind a claim, below the comparison if the claim is marked.
const openClaim = (answer, claim) => openCitations(citedBy(answer, claim), isMarked(claim) && comparison(answer, claim), claim.instead);

// A marked claim beside the sentence nearest to it, the words that differ marked in both, and the reason in words.
function comparison(answer, claim) {
  const [key, n] = why(claim);
  const [cited] = citedBy(answer, claim);
  const row = (words, children) => h("p", { class: "compare" }, h("b", { class: "soft small" }, h("span", { t: words })), " ", h("span", {}, children));
  return h("div", { class: "claim" },
    h("p", { class: "warn", t: key, n }),
    row("claim_words", compared([...answer.text].slice(claim.start, claim.end), claim.start, claim.differing)),
    cited?.text && row("source_words", compared([...cited.text], cited.start, claim.instead)));
}

// A statement with the words marked that differ, without the marks of Markdown; `spans` are places in the whole text.
function compared(characters, start, spans) {
  const [lineMarks] = /^(?:\s*(?:[-*+•>|]|#+)\s+)*/.exec(characters.join(""));
  const begin = start + [...lineMarks].length;
  const moved = spans.map(([from, to]) => [from - begin, to - begin]);
  const pieces = differing(characters.slice(begin - start), moved);
  return pieces.map((piece) => (typeof piece === "string" ? piece.replaceAll("**", "").replaceAll(" | ", " · ") : piece));
}

// Where cited sentences are, and what they say.
const sourceWords = (cited) => h("span", {}, h("b", {}, place(cited[0].document, headingBelow(cited[0].document, cited[0].heading), cited[0].paged && t("page_of", cited[0].page))), cited[0].date && h("span", { class: "soft small" }, ` ${cited[0].date}`), h("span", { class: "block" }, [...new Set(cited.map(({ text }) => plain(text)).filter(Boolean))].join(" … ")));

// The relations in cited passages; what was found besides is behind a heading of its own.
function showEvidence(found) {
  const edges = found.filter(({ cited }) => cited);
  const ends = Map.groupBy(edges.flatMap(({ source, target }) => [source, target]), (name) => name);
  parts.evidence.parentNode.hidden = !parts.intro.hidden || !found.length;
  parts.evidence.hidden = edges.length > 0;
  parts.canvas.hidden = !edges.length;
  drawing.clear();
  drawing.add([...ends].map(([name, { length }]) => ({ name, degree: length, type: "" })), edges);
  const lines = (relations) => relations.map((edge) =>
    line(() => openSources({ entity: edge.source, target: edge.target }), relationWords(edge)));
  parts.relations.replaceChildren(...lines(edges));
  parts.others.replaceChildren(...lines(found.filter(({ cited }) => !cited)));
  parts.others.parentNode.hidden = edges.length === found.length;
  return parts.evidence.parentNode;
}

export const line = (onclick, ...children) => h("li", {}, h("button", { class: "line", onclick }, children));

export function relationWords({ source, predicate, target, reasoning }) {
  const relation = STATING_NOTHING.has(predicate) ? "–" : listed(predicate.split(", "));
  return h("span", {}, h("b", {}, source), " ", h("i", {}, relation), " ", h("b", {}, target), reasoning && ` — ${reasoning}`);
}
