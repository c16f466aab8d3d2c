// Elements made without HTML, so that data can never become markup.

import { t, translate } from "./strings.js";

export const $ = (selector) => document.querySelector(selector);

// An element. `t`, `label` and `hint` name its words in the table, of which `n` fills the gap;
// `on…` are listeners; other properties are attributes.
export function h(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (["t", "n", "label", "hint"].includes(name)) node.dataset[name] = value;
    else if (value != null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  translate(node);
  node.append(...children.flat().filter((child) => child != null && child !== false && child !== ""));
  return node;
}

export function notify(error, about = "") {
  if (error.name === "AbortError") return;
  showNotice("warn", [about, errorWords(error)].filter(Boolean).join(": "));
}

// Good news, with a button for what may follow.
export function inform(words, action) {
  showNotice("good", words, action);
}

function showNotice(kind, words, action) {
  $("#notice").className = kind;
  $("#notice span").replaceChildren(words, ...(action ? [" ", action] : []));
  $("#notice").hidden = false;
}

// Words about an element, shown beside it as long as the pointer or the focus is on it.
export function withTip(node, key, n) {
  const show = () => {
    const tip = $("#tip");
    tip.textContent = t(key, n);
    tip.hidden = false;
    const { left, top, bottom } = node.getBoundingClientRect();
    const right = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(8, Math.min(left, right))}px`;
    tip.style.top = `${top - tip.offsetHeight - 6 > 0 ? top - tip.offsetHeight - 6 : bottom + 6}px`;
  };
  const hide = () => ($("#tip").hidden = true);
  for (const name of ["mouseenter", "focus"]) node.addEventListener(name, show);
  for (const name of ["mouseleave", "blur", "click"]) node.addEventListener(name, hide);
  return node;
}

// What shows that something is under way: dots that move, words, and the seconds.
export class Busy {
  #words = h("span");
  #seconds = h("span", { "aria-hidden": "true" });
  #started = Date.now();
  #timer = setInterval(() => (this.#seconds.textContent = `${Math.round((Date.now() - this.#started) / 1000)} s`), 1000);
  element = h("p", { class: "busy soft", role: "status" }, h("span", { class: "dots", "aria-hidden": "true" }, h("i"), h("i"), h("i")), this.#words, this.#seconds);

  constructor(key) {
    this.say(key);
  }

  say(key, value = "") {
    this.#words.dataset.t = key;
    this.#words.dataset.n = value;
    translate(this.element);
  }

  end() {
    clearInterval(this.#timer);
    this.element.remove();
  }
}

// What went wrong: in the user's language by its code, then the server's own words.
export function errorWords({ code, message }) {
  const lead = t(`error_${code}`);
  return code === "network" ? lead : `${lead} ${message}`.trim();
}

// An action of the user, whose errors are shown in words.
export const guarded = (action) => (...given) => Promise.resolve(action(...given)).catch((error) => notify(error));
