// What is added to an index: files, folders and pasted texts, with one progress for all of them.

import { get, indexPath, post, request } from "./api.js";
import { $, errorWords, guarded, h, notify } from "./dom.js";
import { format, listed, t } from "./strings.js";

const POLL = 700; // milliseconds, while something is read
const LONGEST_ID = 255; // characters
const NOT_MEANT = /(^|\/)(\.|node_modules\/|__pycache__\/)/; // hidden files, and packages of other people
const LISTED = 100; // jobs
const NAMED = 5; // of the files that could not be read

// A place to drop files, with buttons for files, folders and texts; `done` is called as things change.
export function dropZone(title, done) {
  const picker = (properties) => h("input", { type: "file", multiple: true, hidden: true, "aria-hidden": "true", tabindex: -1, ...properties });
  const files = picker({ onchange: () => send(taken(files), done) });
  const folder = picker({ webkitdirectory: true, onchange: () => send(taken(folder), done) });
  const over = (event) => {
    event.preventDefault();
    zone.classList.toggle("over", event.type === "dragover");
  };
  const dropped = guarded(async (event) => {
    over(event);
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.());
    await send(entries.some(Boolean) ? (await Promise.all(entries.filter(Boolean).map(filesIn))).flat() : withPaths(event.dataTransfer.files), done);
  });
  const zone = h("div", { class: "drop card", ondragover: over, ondragleave: over, ondrop: dropped },
    title,
    h("p", { class: "row center" },
      h("button", { class: "main", t: "choose_files", onclick: () => files.click() }),
      h("button", { t: "choose_folder", onclick: () => folder.click() }),
      h("button", { t: "paste_text", onclick: () => openPaste(done) })),
    h("details", { class: "soft" }, h("summary", { t: "which_files" }), h("p", { t: "kinds" })), files, folder);
  return zone;
}

const withPaths = (files) => [...files].map((file) => ({ file, path: file.webkitRelativePath || file.name }));

// The files of an input, which is empty again: the same file may be chosen once more.
function taken(input) {
  const items = withPaths(input.files);
  input.value = "";
  return items;
}

// The files behind a dropped entry, those in folders included.
async function filesIn(entry, above = "") {
  const path = above + entry.name;
  if (entry.isFile) return [{ path, file: await new Promise((resolve, reject) => entry.file(resolve, reject)) }];
  const reader = entry.createReader();
  const found = [];
  for (;;) { // a reader gives a hundred at most
    const entries = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!entries.length) return (await Promise.all(found.map((inner) => filesIn(inner, `${path}/`)))).flat();
    found.push(...entries);
  }
}

// Files of a folder keep their path as their id: two of one name are two documents.
async function send(items, done) {
  const meant = items.filter(({ path }) => !path.includes("/") || !NOT_MEANT.test(path));
  for (const { file, path } of meant) {
    const id = path.includes("/") && path.length <= LONGEST_ID ? { id: path } : {};
    await request(indexPath("/upload"), { params: { name: file.name, ...id }, file }).catch((error) => notify(error, path));
    done(meant.length);
  }
}

function openPaste(done) {
  const text = h("textarea", { name: "text", rows: 10, required: true });
  const title = h("input", { name: "title" });
  const problem = h("p", { class: "warn", role: "alert", hidden: true });
  const send = async (event) => {
    event.preventDefault();
    try {
      await post(indexPath("/documents"), { documents: [{ text: text.value, ...(title.value.trim() && { title: title.value.trim() }) }] });
      $("#edit").close();
      done(1);
    } catch (error) {
      problem.textContent = errorWords(error);
      problem.hidden = false;
    }
  };
  $("#edit").replaceChildren(h("form", { onsubmit: send },
    h("h2", { t: "paste_text" }), field("pasted_text", text), field("pasted_title", title), problem,
    h("div", { class: "row" }, h("button", { class: "main", t: "add" }), h("button", { type: "button", t: "cancel", onclick: () => $("#edit").close() }))));
  $("#edit").showModal();
}

export const field = (key, input, n = "") => h("label", { class: "field" }, h("span", { t: key, n }), input);

// The files of failed jobs by name, with the reasons; null without any.
export function unreadFiles(items) {
  const failed = items.filter(({ kind, state }) => kind === "upload" && state === "failed").reverse(); // as they came
  if (!failed.length) return null;
  const names = failed.map(({ about }) => about.name);
  const rest = names.length > NAMED && h("span", { t: "and_more", n: format(names.length - NAMED) });
  return h("details", { class: "warn card", role: "status" },
    h("summary", {}, h("span", { t: "unread_files", n: format(names.length) }), listed(names.slice(0, NAMED)), rest),
    h("ul", {}, failed.map(({ about, error }) => h("li", {}, error.startsWith(about.name) ? error : `${about.name}: ${error}`))),
    h("p", {}, h("a", { href: "#documents", t: "documents" })));
}

// The jobs of the index as one bar in `place`; the jobs themselves go to `seen`, and it looks again while some are open.
export class Progress {
  #place;
  #seen;
  #timer;

  constructor(place, seen) {
    this.#place = place;
    this.#seen = seen;
  }

  async look() {
    clearTimeout(this.#timer);
    const { items } = await get(indexPath("/jobs"), { limit: LISTED });
    const open = items.filter(({ state }) => state === "waiting" || state === "running");
    this.#place.replaceChildren(...(open.length ? [bar(items, open)] : []));
    await this.#seen(items, open.length);
    if (open.length && this.#place.checkVisibility()) this.#timer = setTimeout(guarded(() => this.look()), POLL);
  }
}

// How many of the jobs since the last pause are done, what is read now, and what it has cost.
function bar(items, open) {
  const began = Math.min(...open.map(({ created_at }) => created_at));
  const batch = items.filter(({ ended_at }) => !ended_at || ended_at >= began);
  const running = open.find(({ state }) => state === "running") ?? open.at(-1);
  const used = batch.map(({ progress, report }) => progress.usage ?? report.usage).filter((usage) => usage?.calls);
  const calls = used.reduce((sum, usage) => sum + usage.calls, 0);
  const tokens = used.reduce((sum, usage) => sum + usage.input_tokens + usage.output_tokens, 0);
  const done = batch.length - open.length;
  const inside = running.progress.chunks_known ? running.progress.chunks_done / running.progress.chunks_known : 0;
  return h("div", { class: "card reading", role: "status" },
    h("p", {}, h("b", { t: "reading_n", n: `${format(done)} / ${format(batch.length)}` }), " ", h("span", { class: "soft", t: `job_${running.kind}`, n: running.about.name ?? "" })),
    h("progress", { value: done + inside, max: batch.length, label: "progress" }),
    calls > 0 && h("p", { class: "soft facts" }, h("span", { t: "model_calls", n: format(calls) }), h("span", { t: "tokens", n: format(tokens) })));
}
