// Passages of documents in a dialog, with the sentence marked that is nearest to a claim.

import { get, indexPath } from "./api.js";
import { $, guarded, h } from "./dom.js";

export const MOST_PASSAGES = 20; // behind an entity or a relation, that the server lists

// Show the passages behind an entity or a relation, {entity, target}, of some documents only if `ids` are given.
export const openSources = guarded(async (params, ids) => {
  const { chunks, documents } = await get(indexPath("/sources"), params);
  const titles = new Map(Object.entries(documents));
  const note = chunks.length < MOST_PASSAGES ? null : h("p", { class: "soft", t: "first_passages", n: MOST_PASSAGES });
  open(chunks.filter((chunk) => !ids || ids.includes(chunk.document_id)).map((chunk) => card(chunk, titles.get(chunk.document_id))), note);
});

// Show the passages that citations name, each once; `note` is what is known of the claim, `instead` the places of words that differ.
export const openCitations = guarded(async (citations, note, instead = []) => {
  const ids = [...new Set(citations.map((one) => one.chunk_id))];
  const found = await Promise.all(ids.map((chunk) => get(indexPath("/sources"), { chunk })));
  open(found.map(({ chunks: [chunk], documents }) =>
    card(chunk, new Map(Object.entries(documents)).get(chunk.document_id), citations.filter((one) => one.chunk_id === chunk.id), instead)), note);
});

// Where a passage is, in words.
export const place = (...names) => [...new Set(names.filter(Boolean))].join(" › ");

// The headings above a passage, without the title of the document.
export const headingBelow = (title, heading) => heading.split(" › ").filter((part, at) => at > 0 || part !== title).join(" › ");

function open(cards, note) {
  $("#passage div").replaceChildren(...(note ? [note] : []), ...cards);
  $("#passage").showModal();
  $("#passage mark")?.scrollIntoView({ block: "center" });
}

// Offsets of the server count characters, and not UTF-16 units.
function card(chunk, title, citations = [], instead = []) {
  const characters = [...chunk.text];
  const text = h("p", { class: "passage" });
  let shown = 0;
  const show = (end, tag) => text.append(h(tag, {}, characters.slice(shown, (shown = Math.max(shown, end))).join("")));
  for (const { start, end } of citations.filter((one) => one.end > one.start).sort((a, b) => a.start - b.start)) {
    show(start - chunk.start, "span");
    const first = Math.max(shown, start - chunk.start);
    show(end - chunk.start, "mark");
    const inside = instead.map(([from, to]) => [from - chunk.start - first, to - chunk.start - first]);
    text.lastChild.replaceChildren(...differing(characters.slice(first, shown), inside));
  }
  show(characters.length, "span");
  return h("article", { class: "card" },
    h("h3", {}, citations[0]?.number && h("span", { class: "number" }, citations[0].number), " ", place(title, headingBelow(title, chunk.heading))),
    (chunk.page > 1 || citations[0]?.paged) && h("p", { class: "soft", t: "page_of", n: chunk.page }),
    text);
}

// Characters as text, those that differ marked.
export function differing(characters, spans) {
  const pieces = [];
  let shown = 0;
  for (const [start, end] of [...spans].sort(([a], [b]) => a - b)) {
    if (start < shown || end > characters.length) continue;
    pieces.push(characters.slice(shown, start).join(""), h("b", { class: "differs" }, characters.slice(start, end).join("")));
    shown = end;
  }
  return [...pieces, characters.slice(shown).join("")];
}
