// Changes of the graph by hand, in a dialog: an entity's type and description, a merge, a deletion. Each can be undone.

import { get, indexPath, post } from "./api.js";
import { $, Busy, errorWords, guarded, h, inform } from "./dom.js";
import { t } from "./strings.js";

const POLL = 300; // milliseconds

// The fields of each change, filled from the entity.
const FIELDS = new Map(Object.entries({
  edit: ({ type, description }) => [
    field("type", h("input", { name: "type", required: true, value: type })),
    field("description", h("textarea", { name: "description", rows: 5 }, description)),
  ],
  merge: () => [
    field("merge_into", h("input", { name: "target", required: true, list: "names", oninput: guarded(suggest), autocomplete: "off" })),
    h("datalist", { id: "names" }),
  ],
  delete: () => [],
  settle: () => [],
}));
const ON_ENTITY = ["edit", "merge", "delete"];

const field = (key, input) => h("label", { class: "field" }, h("span", { t: key }), input);

// Buttons to change an entity; `done` is called with the name that it has afterwards, or null.
export function editButtons(entity, done) {
  return ON_ENTITY.map((action) =>
    h("button", { class: "link", t: `${action}_entity`, onclick: () => openDialog(action, entity, done) }));
}

// A button to delete the relation of a claim, which settles a contradiction.
export function settleButton({ subject, value }, done) {
  const relation = { name: `${subject} → ${value}`, source: subject, target: value };
  return h("button", { class: "link", t: "settle_entity", onclick: () => openDialog("settle", relation, done) });
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
    h("p", { class: "soft", t: `${action}_entity_why` }), FIELDS.get(action)(entity),
    field("author", by), field("reason", h("input", { name: "reason" })), problem,
    h("div", { class: "row" }, send, h("button", { type: "button", t: "cancel", onclick: () => $("#edit").close() })));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    localStorage.setItem("author", by.value);
    const busy = new Busy("saving");
    form.append(busy.element);
    send.disabled = true;
    try {
      const values = Object.fromEntries(new FormData(form));
      const settled = { action: "delete", name: entity.source, target: entity.target };
      const edit = action === "settle" ? settled : { action, name: entity.name };
      await change(action, { ...edit, ...values }, entity.name, done);
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
    await finished(await undoing(report));
    inform(t("undone"));
    done(name);
  }) });
  inform(t(`${action}_done`, name), undo);
  done(action === "edit" ? name : edit.target ?? null);
}

const undoing = ({ document, unmerge }) =>
  document ? post(indexPath("/delete"), { ids: [document] }) : post(indexPath("/edit"), { action: "unmerge", name: unmerge });

// The report of a job once it is done; an error with the job's words if it fails.
export async function finished({ id }) {
  for (;;) {
    const { state, report, error } = await get(indexPath(`/jobs/${id}`));
    if (state === "done") return report;
    if (state === "failed" || state === "cancelled") throw new Error(error || t(`state_${state}`));
    await new Promise((resolve) => setTimeout(resolve, POLL));
  }
}
