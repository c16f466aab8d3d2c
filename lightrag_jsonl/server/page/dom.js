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
  $("#notice span").textContent = [about, errorWords(error)].filter(Boolean).join(": ");
  $("#notice").hidden = false;
}

// What went wrong: in the user's language by its code, then the server's own words.
export function errorWords({ code, message }) {
  const lead = t(`error_${code}`);
  return code === "network" ? lead : `${lead} ${message}`.trim();
}

// An action of the user, whose errors are shown in words.
export const guarded = (action) => (...given) => Promise.resolve(action(...given)).catch((error) => notify(error));
