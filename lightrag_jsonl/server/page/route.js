// The place in the page as a link: #view, or #view/part/part, so that back, forward and bookmarks work.

const VIEWS = ["ask", "graph", "documents"];

// The view and the parts that follow it.
export function route() {
  const [view, ...parts] = location.hash.slice(1).split("/").map(decoded);
  return VIEWS.includes(view) ? { view, parts } : { view: "ask", parts: [] };
}

export const linkTo = (...parts) => `#${parts.map(encodeURIComponent).join("/")}`;

// Go to a place; one that is shown already is shown anew.
export function go(...parts) {
  if (location.hash === linkTo(...parts)) dispatchEvent(new Event("hashchange"));
  else location.hash = linkTo(...parts);
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch { // a link that was cut off
    return part;
  }
}
