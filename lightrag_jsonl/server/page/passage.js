// Passages of documents in a dialog, with the sentence marked that supports an answer.

import { get, indexPath } from "./api.js";
import { $, guarded, h } from "./dom.js";

// Show up to eight passages behind an entity or a relation, {entity, target}, of some documents only if `ids` are given.
export const openSources = guarded(async (params, ids) => {
  const { chunks, documents } = await get(indexPath("/sources"), params);
  const titles = new Map(Object.entries(documents));
  open(chunks.filter((chunk) => !ids || ids.includes(chunk.document_id)).slice(0, 8).map((chunk) => card(chunk, titles.get(chunk.document_id))));
});

// Show the passages that citations name, each once.
export const openCitations = guarded(async (citations) => {
  const ids = [...new Set(citations.map((one) => one.chunk_id))];
  const found = await Promise.all(ids.map((chunk) => get(indexPath("/sources"), { chunk })));
  open(found.map(({ chunks: [chunk], documents }) =>
    card(chunk, new Map(Object.entries(documents)).get(chunk.document_id), citations.filter((one) => one.chunk_id === chunk.id))));
});

// Where a passage is, in words.
export const place = (...names) => [...new Set(names.filter(Boolean))].join(" › ");

function open(cards) {
  $("#passage div").replaceChildren(...cards);
  $("#passage").showModal();
  $("#passage mark")?.scrollIntoView({ block: "center" });
}

// Offsets of the server count characters, and not UTF-16 units.
function card(chunk, title, citations = []) {
  const characters = [...chunk.text];
  const text = h("p", { class: "passage" });
  let shown = 0;
  const show = (end, tag) => text.append(h(tag, {}, characters.slice(shown, (shown = Math.max(shown, end))).join("")));
  for (const { start, end } of citations.filter((one) => one.supported).sort((a, b) => a.start - b.start)) {
    show(start - chunk.start, "span");
    show(end - chunk.start, "mark");
  }
  show(characters.length, "span");
  return h("article", { class: "card" },
    h("h3", {}, citations[0]?.number && h("span", { class: "number" }, citations[0].number), " ", place(title, chunk.heading)),
    (chunk.page > 1 || citations[0]?.paged) && h("p", { class: "soft", t: "page_of", n: chunk.page }),
    citations.some((one) => !one.supported) && h("p", { class: "warn", t: "unsupported" }), text);
}
