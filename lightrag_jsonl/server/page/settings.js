// Which model answers, and the dialog that sets it: a model is used once it has answered.

import { get, indexPath, post } from "./api.js";
import { $, Busy, errorWords, guarded, h, inform } from "./dom.js";
import { t } from "./strings.js";
import { field } from "./uploads.js";

const NONE = "none";
// Services with the name of a model to begin with, and an address; "" is the address of the server's own settings.
const SERVICES = new Map(Object.entries({
  openai: { llm: "gpt-4o-mini", base_url: "", key: true },
  ollama: { llm: "qwen3:8b", base_url: "http://localhost:11434/v1", key: false },
  other: { llm: "", base_url: "https://", key: true },
}));

// A line that says which model answers, with the way to another where it may be set here.
export async function modelLine(changed) {
  const { llm, may_set_model: maySet } = await get(indexPath("/settings"));
  const button = h("button", { class: "link", t: llm === NONE ? "set_model" : "change_model", onclick: guarded(() => openModel(changed)) });
  return [h("span", llm === NONE ? { t: "no_model" } : { t: "model_is", n: llm }), maySet && " ", maySet && button].filter(Boolean);
}

async function openModel(changed) {
  const { llm, base_url: baseUrl } = await get(indexPath("/settings"));
  const name = h("input", { name: "llm", required: true, autocomplete: "off", spellcheck: "false" });
  const address = h("input", { name: "base_url", type: "url", autocomplete: "off", spellcheck: "false" });
  const key = h("input", { name: "api_key", type: "password", autocomplete: "off" });
  const [addressField, keyField] = [field("model_address", address), field("model_key", key)];
  const service = h("select", { onchange: () => fill() }, [...SERVICES.keys()].map((id) => h("option", { value: id, t: `service_${id}` })));
  const problem = h("p", { class: "warn", role: "alert", hidden: true });
  const fill = () => {
    const chosen = SERVICES.get(service.value);
    [name.value, address.value, key.value] = [chosen.llm, chosen.base_url, ""];
    addressField.hidden = !chosen.base_url;
    keyField.hidden = !chosen.key;
  };
  const use = async (values) => {
    const busy = new Busy("asking_model");
    problem.hidden = true;
    form.append(busy.element);
    form.inert = true;
    try {
      await post(indexPath("/settings"), values);
      $("#edit").close();
      inform(values.llm === NONE ? t("model_off") : t("model_on", values.llm));
      changed();
    } catch (error) {
      problem.textContent = errorWords(error);
      problem.hidden = false;
    }
    form.inert = false;
    busy.end();
  };
  const submit = (event) => {
    event.preventDefault();
    use({ llm: name.value.trim(), base_url: addressField.hidden ? "" : address.value.trim(), api_key: keyField.hidden ? "" : key.value.trim() });
  };
  const form = h("form", { onsubmit: submit },
    h("h2", { t: "model_title" }), h("p", { class: "soft", t: "model_why" }),
    field("service", service), field("model_name", name), addressField, keyField, h("p", { class: "soft small", t: "key_stays" }), problem,
    h("div", { class: "row" }, h("button", { class: "main", t: "model_use" }),
      llm !== NONE && h("button", { type: "button", t: "model_none", onclick: () => use({ llm: NONE }) }),
      h("button", { type: "button", t: "cancel", onclick: () => $("#edit").close() })));
  if (baseUrl.includes(":11434")) service.value = "ollama";
  fill();
  if (llm !== NONE) name.value = llm;
  $("#edit").replaceChildren(form);
  $("#edit").showModal();
}
