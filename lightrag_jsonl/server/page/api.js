// Requests to the server: the token, errors in words, and streams of events.

import { $, h } from "./dom.js";

export const current = { index: "" };

const failure = (code, message) => Object.assign(new Error(message), { code });

export const token = () => sessionStorage.getItem("token");

export const indexPath = (path) => `/indexes/${encodeURIComponent(current.index)}${path}`;

export const get = async (path, params) => (await request(path, { params })).json();

export const post = async (path, json) => (await request(path, { json })).json();

export async function request(path, { params, json, file, signal } = {}) {
  const url = new URL(path, location.origin);
  for (const [name, value] of Object.entries(params ?? {})) url.searchParams.set(name, value);
  const headers = token() ? { "X-API-Key": token() } : {};
  if (json) headers["Content-Type"] = "application/json";
  if (file) headers["Content-Type"] = "application/octet-stream";
  const body = file ?? (json && JSON.stringify(json));
  const sent = fetch(url, { method: body ? "POST" : "GET", headers, body, signal });
  const response = await sent.catch((error) => {
    throw error.name === "AbortError" ? error : failure("network", String(error));
  });
  if (response.status === 401) {
    await askForToken();
    return request(path, { params, json, file, signal });
  }
  if (!response.ok) {
    const { error } = await response.json().catch(() => ({ error: {} }));
    throw failure(error.code, error.message ?? response.statusText);
  }
  return response;
}

// Show the dialog, one for all requests that wait for the token.
async function askForToken() {
  const dialog = $("#token");
  if (!dialog.open) {
    dialog.returnValue = $("#token input").value = "";
    $("#token p").replaceWith(h("p", token() ? { class: "warn", t: "token_wrong" } : { class: "soft", t: "token_why" }));
    dialog.showModal();
  }
  await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  if (dialog.returnValue !== "ok") throw new DOMException("", "AbortError");
  sessionStorage.setItem("token", $("#token input").value.trim());
}

// The server-sent events of a question, as [name, value].
export async function* events(path, json, signal) {
  const { body } = await request(path, { json, signal });
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const [name, data] = block.split("\n");
      const found = JSON.parse(data.slice("data: ".length));
      if (name === "event: error") throw failure(found.code, found.message);
      yield [name.slice("event: ".length), found];
    }
  }
}
