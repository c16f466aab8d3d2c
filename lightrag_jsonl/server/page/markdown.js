// Markdown as elements, its citations as buttons; code cites nothing but a number alone. Data never becomes markup.
// Where the server found a citation, its place in the text stands for it until its button is made.

import { Lexer, Tokenizer } from "marked";
import { h } from "./dom.js";

const NUMBERS = String.raw`[[［【]\s*(\d+(?:\s*[,，、;；‐-―−~～－-]\s*\d+)*)\s*[\]］】]`;
const MARKER = new RegExp(String.raw`\[\uE000(\d+)\uE001\]|${NUMBERS}(?!\((?:https?:|#))`);
const AT_MARKER = new RegExp(NUMBERS, "y");
const AT_START = new RegExp(`^${NUMBERS}`);
const TAGS = new Map(Object.entries({ paragraph: "p", blockquote: "blockquote", strong: "b", em: "i", del: "del" }));

class Plain extends Tokenizer {
  def() {} // "[1]: …" is a citation, and no link

  del(src, ...more) {
    return src.startsWith("~~") ? super.del(src, ...more) : undefined; // 180~190 is a range
  }

  emStrong(src, ...more) { // CommonMark closes no ** between 》 and a Chinese character
    const [raw, text] = /^\*\*(?!\s)([^*`\n]+)(?<!\s)\*\*(?!\*)/.exec(src) ?? [];
    return text ? { type: "strong", raw, text, tokens: this.lexer.inlineTokens(text) } : super.emStrong(src, ...more);
  }
}

// The text with "[\uE000place\uE001]" for every marker of a claim and behind every statement without one (`added`), in brackets as Markdown reads the marker. Places count characters, and not UTF-16 units.
function placed(text, claims) {
  const characters = [...text.replace(/[\uE000\uE001]/g, " ")];
  let rest = characters.length;
  let marked = "";
  const added = new Set(claims.filter((one) => one.added).map(({ marker }) => marker));
  for (const place of [...new Set(claims.map(({ marker }) => marker))].sort((a, b) => b - a)) {
    const after = characters.slice(place, rest).join("");
    AT_MARKER.lastIndex = 0;
    const [marker = ""] = AT_MARKER.exec(after) ?? [];
    const stands = marker || added.has(place);
    marked = `${stands && `[\uE000${place}\uE001]`}${after.slice(marker.length)}${marked}`;
    rest = place;
  }
  return characters.slice(0, rest).join("") + marked;
}

const ENDS_SENTENCE = /[。！？\n]|[.!?](?=["'”’)\]\s]|$)/;

// The claims whose number the same sentence cites once more, with the same verdict: the last one stands for them.
function repeatedClaims(text, claims) {
  const characters = [...text];
  const ordered = [...claims].sort((a, b) => a.marker - b.marker);
  return new Set(ordered.filter((claim, at) => {
    const next = ordered.slice(at + 1).find(({ number }) => number === claim.number);
    if (!next || next.verdict !== claim.verdict || /[。！？.!?]/.test(characters[claim.marker - 1])) return false;
    if (claim.reason && next.marker !== claim.marker && next.start !== claim.start) return false;
    const between = characters.slice(claim.marker, next.marker).join("").replace(AT_START, "");
    return !ENDS_SENTENCE.test(between);
  }));
}

// What quotations bring along: the bullet of a point inside a point, cells of a table, brackets of wiki links.
const withoutRemains = (text) => text
  .replace(/^(\s*[-*+] )(?:[-*+•·] +)+/gm, "$1")
  .replace(/^(\s*[-*+] )\|? *([^\n]*\S) *\|? *$/gm, (_, bullet, words) => bullet + (words.includes("`") ? words : words.replace(/ *\| */g, " · ")))
  .replace(WIKI_LINK, "$1");

const WIKI_LINK = /\[\[(?!\s*\d+\s*\]\])(?:[^\[\]|\n]*\|)?([^\[\]|\n]+)\]\]/g;

// A sentence of a document as plain words.
export const plain = (text) => text
  .replace(WIKI_LINK, "$1")
  .replace(/!?\[([^[\]]*)\]\([^()\s]*\)/g, "$1")
  .replace(/\[(?=[^[\]]*\p{L})([^[\]]+)\]\[[^[\]]*\]/gu, "$1")
  .replace(/^\s*(?:[-*+>•] +|#+ +|\|)\s*/, "")
  .replace(/\*\*|__|`/g, "")
  .replace(/(?<![\w*])\*(?=[^\s*])|(?<=[^\s*])\*(?![\w*])/g, "")
  .replace(/\s*\|\s*$/, "")
  .replace(/\s+\|\s+/g, " · ")
  .trim();

// The elements of a text; `button` makes the one of a citation's number, and of its claim if it has one.
export function markdown(text, claims, button) {
  const atMarkers = Map.groupBy(claims, ({ marker }) => String(marker));
  const repeated = repeatedClaims(text, claims);
  const buttonsAt = (place) => (atMarkers.get(place) ?? []).filter((claim) => !repeated.has(claim)).map((claim) => button(claim.number, claim));
  const cited = (words) => {
    const pieces = words.split(MARKER); // text, place of a claim, numbers, text, …
    return pieces.flatMap((piece, at) => {
      const goesOn = at % 3 === 0 && pieces[at + 1] !== undefined && buttonsAt(pieces[at + 1]).length === 0;
      if (goesOn) return piece.trimEnd(); // no number follows
      if (at % 3 === 0 || piece === undefined) return piece?.replaceAll("**", "") ?? []; // half of a pair
      if (at % 3 === 1) return buttonsAt(piece);
      return piece.match(/\d+/g).map((number) => button(Number(number)));
    });
  };
  const all = (tokens) => tokens.flatMap(element);
  const row = (tag, cells) => h("tr", {}, cells.map(({ tokens }) => h(tag, {}, all(tokens))));

  function element(token) {
    const { type, raw, tokens } = token;
    if (TAGS.has(type)) return h(TAGS.get(type), {}, all(tokens));
    if (type === "heading") return h(`h${Math.min(token.depth + 2, 6)}`, {}, all(tokens));
    if (type === "list") return h(token.ordered ? "ol" : "ul", { start: token.ordered && token.start },
      token.items.map((item) => h("li", {}, all(item.tokens))));
    if (type === "table") return h("table", {}, row("th", token.header), token.rows.map((cells) => row("td", cells)));
    if (type === "code") return h("pre", {}, h("code", {}, token.text));
    if (type === "codespan") return token.text.replace(MARKER, "").trim() ? h("code", {}, token.text) : cited(token.text);
    if (type === "link" && /^https?:/.test(token.href)) return h("a", { href: token.href, target: "_blank", rel: "noopener" }, all(tokens));
    if (type === "link") return cited(raw);
    if (type === "br" || type === "hr") return h(type);
    if (type === "space") return [];
    if (tokens) return all(tokens);
    return cited(type === "escape" ? token.text : raw);
  }

  try {
    return all(new Lexer({ breaks: true, gfm: true, tokenizer: new Plain() }).lex(withoutRemains(placed(text, claims))));
  } catch { // nested too deeply
    return cited(text);
  }
}
