// Passages of documents in a dialog, with the sentence marked that supports an answer.

import { get, indexPath } from "./api.js";
import { $, guarded, h } from "./dom.js";

const MOST = 8;

// Show the passages behind an entity or a relation: {entity, target}.
export const openSources = guarded(async (params) => {
  const { chunks, documents } = await get(indexPath("/sources"), params);
  open(chunks.slice(0, MOST).map((chunk) => card(chunk, documents[chunk.document_id])));
});

// Show the passages that citations name.
export const openCitations = guarded(async (citations) => {
  const found = citations.map((one) => get(indexPath("/sources"), { chunk: one.chunk_id }));
  open((await Promise.all(found)).map(({ chunks }, at) => card(chunks[0], citations[at].document, citations[at])));
});

function open(cards) {
  $("#passage div").replaceChildren(...cards);
  $("#passage").showModal();
  $("#passage mark")?.scrollIntoView({ block: "center" });
}

// Offsets of the server count characters, and not UTF-16 units.
function card(chunk, title, citation) {
  const characters = [...chunk.text];
  const start = Math.max(0, (citation?.start ?? 0) - chunk.start);
  const end = citation?.supported ? Math.max(start, citation.end - chunk.start) : start;
  const part = (from, to) => characters.slice(from, to).join("");
  return h("article", { class: "card" },
    h("h3", {}, citation && h("span", { class: "number" }, citation.number), [title, chunk.heading].filter(Boolean).join(" › ")),
    chunk.page > 1 && h("p", { class: "soft", t: "page_of", n: chunk.page }),
    citation && !citation.supported && h("p", { class: "warn", t: "unsupported" }),
    h("p", { class: "passage" }, part(0, start), start < end && h("mark", {}, part(start, end)), part(end)));
}
