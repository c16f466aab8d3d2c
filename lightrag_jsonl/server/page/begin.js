// The first screen: the first file of an empty index, and what a collection is about with questions to begin with.

import { get, indexPath, post } from "./api.js";
import { Busy, guarded, h } from "./dom.js";
import { plain } from "./markdown.js";
import { openCitations } from "./passage.js";
import { linkTo } from "./route.js";
import { modelLine } from "./settings.js";
import { pageLanguage } from "./strings.js";
import { dropZone, field, Progress, unreadFiles } from "./uploads.js";

// Fill `place`; `ask` asks a question, `filled` is called when the first document is there.
export class Beginning {
  #place;
  #ask;
  #filled;
  #reading = h("div", {});
  #progress = new Progress(this.#reading, (items, open) => this.#seen(items, open));
  #wasEmpty = false;
  #shown = ""; // what was shown last: the same is not made anew under the pointer

  constructor(place, ask, filled) {
    this.#place = place;
    this.#ask = ask;
    this.#filled = filled;
  }

  show = guarded(async () => {
    const { documents } = await get(indexPath(""));
    const readable = (documents.done ?? 0) + (documents.partial ?? 0);
    if (readable) await this.#showCollection();
    else if (!this.#wasEmpty) await this.#showEmpty();
    await this.#progress.look();
    return readable > 0;
  });

  async #showEmpty() {
    this.#wasEmpty = true;
    const { language, may_set_language: maySet } = await get(indexPath("/settings"));
    const select = h("select", {}, ["en", "zh"].map((code) => h("option", { value: code, t: `texts_${code}` })));
    const choose = guarded(() => post(indexPath("/settings"), { language: select.value }));
    select.addEventListener("change", choose);
    select.value = ["en", "zh"].includes(language) ? language : "en";
    if (maySet && language !== pageLanguage()) { // before the first file can come, which fixes the language
      select.value = pageLanguage();
      await choose();
    }
    const title = h("div", {}, h("h1", { t: "first_file" }), h("p", { class: "soft", t: "first_file_hint" }));
    const model = h("p", { class: "soft" });
    const showModel = guarded(async () => model.replaceChildren(...(await modelLine(showModel))));
    this.#place.replaceChildren(dropZone(title, () => this.show()), this.#reading, maySet ? field("texts_language", select) : "", model);
    showModel();
  }

  async #showCollection() {
    const heading = h("div", {}, h("h1", { t: "ask_title" }), h("p", { class: "soft", t: "ask_hint" }));
    const about = h("div", { class: "about" });
    if (!this.#place.querySelector(".about")) this.#place.replaceChildren(heading, this.#reading, about);
    const busy = new Busy("looking");
    if (!about.hasChildNodes()) about.append(busy.element);
    const beginning = await get(indexPath("/beginning")).finally(() => busy.end());
    const { sentences, names, questions } = beginning;
    const isNew = this.#shown !== JSON.stringify(beginning) || !this.#place.querySelector(".about")?.hasChildNodes();
    this.#shown = JSON.stringify(beginning);
    if (isNew) this.#place.querySelector(".about")?.replaceChildren(...[
      questions.length && h("section", {}, h("h2", { t: "begin_with" }), h("ul", { class: "questions" }, questions.map((question) => h("li", {}, h("button", { onclick: () => this.#ask(question) }, question))))),
      sentences.length && h("section", {}, h("h2", { t: "what_it_says" }), h("ul", { class: "list" }, sentences.map((one) => h("li", {}, h("button", { class: "line", onclick: () => openCitations([one]) }, h("span", {}, h("span", { class: "ink" }, plain(one.text)), h("span", { class: "soft small block" }, one.document))))))),
      names.length && h("section", {}, h("h2", { t: "main_names" }), h("p", { class: "chips" }, names.map(({ name }) => h("a", { class: "chip", href: linkTo("graph", "entity", name) }, name)))),
    ].filter(Boolean));
    if (this.#wasEmpty) {
      this.#wasEmpty = false;
      this.#filled();
    }
  }

  // What could not be read is named. While the first files are read: what of them is there is shown as soon as
  // nothing more comes.
  async #seen(items, open) {
    this.#reading.append(unreadFiles(items) ?? "");
    if (this.#wasEmpty && !open && items.length) {
      const { documents } = await get(indexPath(""));
      if (documents.done || documents.partial) await this.#showCollection();
    }
  }
}
