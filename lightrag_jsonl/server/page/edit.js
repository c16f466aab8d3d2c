// Changes of the graph by hand, in a dialog: an entity's type and description, a merge, a separation of namesakes, a
// deletion. Each can be undone.

import { get, indexPath, post } from "./api.js";
import { $, Busy, errorWords, guarded, h, inform } from "./dom.js";
import { UNKNOWN } from "./drawing.js";
import { listed, t } from "./strings.js";

const POLL = 300; // milliseconds

// The fields of each change, filled from the entity.
const FIELDS = new Map(Object.entries({
  edit: ({ type, description }) => [
    field("type", h("input", { name: "type", hint: "type_unknown", value: type === UNKNOWN ? "" : type })),
    field("description", h("textarea", { name: "description", rows: 5 }, description)),
  ],
  merge: () => [
    field("merge_into", h("input", { name: "target", required: true, list: "names", oninput: guarded(suggest), autocomplete: "off" })),
    h("datalist", { id: "names" }),
  ],
  separate: ({ bearers }) => Object.entries(bearers).map(([qualifier, documents]) =>
    field("qualifier", h("input", { name: "qualifier", required: true, value: qualifier }), listed(documents))),
}));
// The request of a change that is more than the entity's name and the fields above.
const REQUESTS = new Map(Object.entries({
  edit: ({ name }, form) => ({ action: "edit", name, ...values(form), type: form.get("type") || UNKNOWN }),
  settle: ({ source, target }, form) => ({ action: "delete", name: source, target, ...values(form) }),
  separate: ({ name, bearers }, form) => ({ action: "separate", name, bearers: renamed(bearers, form.getAll("qualifier")) }),
}));
const AUTHORED = ["edit", "merge", "delete", "settle"]; // changes that are kept with an author and a reason
const ON_ENTITY = ["edit", "merge", "delete"];
const QUALIFIED = /^(.*\S) \([^()]+\)$/;

const field = (key, input, n = "") => h("label", { class: "field" }, h("span", { t: key, n }), input);

const values = (form) => Object.fromEntries(form);

// The documents of each bearer by the qualifier that was written for it.
function renamed(bearers, qualifiers) {
  const documents = new Map();
  Object.values(bearers).forEach((ids, at) => documents.set(qualifiers[at], [...(documents.get(qualifiers[at]) ?? []), ...ids]));
  return Object.fromEntries(documents);
}

// Buttons to change an entity; `done` is called with the name that it has afterwards, or null.
export function editButtons(entity, done) {
  const bare = QUALIFIED.exec(entity.name)?.[1];
  const actions = entity.aliases.includes(bare) ? [...ON_ENTITY, "rejoin"] : ON_ENTITY;
  return actions.map((action) => dialogButton(action, entity, (name) => done(action === "rejoin" && name ? bare : name)));
}

// A button to tell the bearers of a name apart.
export const separateButton = (homonym, done) => dialogButton("separate", homonym, done);

const dialogButton = (action, entity, done) =>
  h("button", { class: "link", t: `${action}_entity`, onclick: () => openDialog(action, entity, done) });

// A button to delete the relation of a claim, which settles a contradiction.
export function settleButton({ subject, value }, done) {
  const relation = { name: `${subject} → ${value}`, source: subject, target: value };
  return dialogButton("settle", relation, done);
}

async function suggest({ target: { value } }) {
  const { items } = await get(indexPath("/entities"), { q: value, limit: 8 });
  $("#names")?.replaceChildren(...items.map(({ name }) => h("option", { value: name })));
}

function openDialog(action, entity, done) {
  const problem = h("p", { class: "warn", role: "alert", hidden: true });
  const by = h("input", { name: "by", required: true, value: localStorage.getItem("author") ?? "" });
  const send = h("button", { class: "main", t: action === "edit" ? "save" : `${action}_entity` });
  const form = h("form", {},
    h("h2", { t: `${action}_title`, n: entity.name }),
    h("p", { class: "soft", t: `${action}_entity_why` }), FIELDS.get(action)?.(entity) ?? [],
    AUTHORED.includes(action) && [field("author", by), field("reason", h("input", { name: "reason" }))], problem,
    h("div", { class: "row" }, send, h("button", { type: "button", t: "cancel", onclick: () => $("#edit").close() })));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    localStorage.setItem("author", by.value);
    const busy = new Busy("saving");
    form.append(busy.element);
    send.disabled = true;
    try {
      const written = new FormData(form);
      const edit = REQUESTS.get(action)?.(entity, written) ?? { action, name: entity.name, ...values(written) };
      await change(action, edit, entity.name, done);
      $("#edit").close();
    } catch (error) {
      problem.textContent = errorWords(error);
      problem.hidden = false;
    }
    busy.end();
    send.disabled = false;
  });
  $("#edit").replaceChildren(form);
  $("#edit").showModal();
}

async function change(action, edit, name, done) {
  const report = await finished(await post(indexPath("/edit"), edit));
  const undo = h("button", { class: "link", t: "undo", onclick: guarded(async () => {
    inform(t("saving"));
    for (const [path, request] of undoing(report)) await finished(await post(indexPath(path), request));
    inform(t("undone"));
    done(name);
  }) });
  inform(t(`${action}_done`, name), undoing(report).length && undo);
  done(["edit", "rejoin"].includes(action) ? name : edit.target ?? null);
}

// The requests that undo a change, one after another.
function undoing({ document, unmerge, rejoin }) {
  if (document) return [["/delete", { ids: [document] }]];
  if (unmerge) return [["/edit", { action: "unmerge", name: unmerge }]];
  return rejoin.map((name) => ["/edit", { action: "rejoin", name }]);
}

// The report of a job once it is done; an error with the job's words if it fails.
export async function finished({ id }) {
  for (;;) {
    const { state, report, error } = await get(indexPath(`/jobs/${id}`));
    if (state === "done") return report;
    if (state === "failed" || state === "cancelled") throw new Error(error || t(`state_${state}`));
    await new Promise((resolve) => setTimeout(resolve, POLL));
  }
}
