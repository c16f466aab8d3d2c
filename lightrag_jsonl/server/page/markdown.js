// Markdown as elements, its citations as buttons; code cites nothing but a number alone. Data never becomes markup.

import { Lexer, Tokenizer } from "marked";
import { h } from "./dom.js";

const MARKER = /[[［【]\s*(\d+(?:\s*[,，、;；-]\s*\d+)*)\s*[\]］】](?!\((?:https?:|#))/;
const TAGS = { paragraph: "p", blockquote: "blockquote", strong: "b", em: "i", del: "del" };

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

// The elements of a text; `button` makes the one of a citation's number.
export function markdown(text, button) {
  const cited = (words) => words.split(MARKER).flatMap((piece, at) =>
    at % 2 ? piece.match(/\d+/g).map((number) => button(Number(number))) : piece);
  const all = (tokens) => tokens.flatMap(element);
  const row = (tag, cells) => h("tr", {}, cells.map(({ tokens }) => h(tag, {}, all(tokens))));

  function element(token) {
    const { type, raw, tokens } = token;
    if (type in TAGS) return h(TAGS[type], {}, all(tokens));
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
    return all(new Lexer({ breaks: true, gfm: true, tokenizer: new Plain() }).lex(text));
  } catch { // nested too deeply
    return cited(text);
  }
}
