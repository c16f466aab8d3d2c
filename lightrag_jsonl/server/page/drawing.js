// A drawing of a graph on a canvas: adds nodes, lays them out in a worker, and follows the theme.

import Graph from "graphology";
import Sigma from "sigma";

import { h } from "./dom.js";
import { listed, STATING_NOTHING } from "./strings.js";

const MOST_NODES = 500;
const [NEAREST, FURTHEST] = [0.5, 2]; // shares of the drawing that are shown around a chosen node
const FULL_WIDTH = 560; // pixels; nodes are smaller in a narrower drawing
// The colors of the most frequent types, in the order of `export graph.html`, and of all others.
const COLORS = ["#2f7ed8", "#d1495b", "#3a9d6e", "#c98a1b", "#8e6bbf", "#2a9aa8", "#b5654a"];
const OTHER_COLOR = "#8a8f98";
const colors = new Map();

export const UNKNOWN = "unknown"; // the type of an entity that no model has read

// Give each known type its color; the most frequent type comes first.
export function setTypes(types) {
  colors.clear();
  const knownTypes = types.filter((type) => type !== UNKNOWN);
  knownTypes.forEach((type, at) => colors.set(type, COLORS[at] ?? OTHER_COLOR));
}

// The color of a type of entities, the same in every drawing.
export const colorOf = (type) => colors.get(type) ?? OTHER_COLOR;

const BESIDE = 3; // pixels between a node and a name at its side

// The places of a name at its node, the best first: below, above, right, left. Each is the left end and the top of the
// name in pixels, from the node's place and size, and the width and height of the name.
const PLACES = [
  ({ x, y, size }, width) => [x - width / 2, y + size],
  ({ x, y, size }, width, height) => [x - width / 2, y - size - height - BESIDE],
  ({ x, y, size }, _width, height) => [x + size + BESIDE, y - height / 2],
  ({ x, y, size }, width, height) => [x - size - BESIDE - width, y - height / 2],
];

// Write a node's name at one of its places.
function drawName(context, node, { labelSize, labelFont, labelColor }, place = PLACES[0]) {
  Object.assign(context, { font: `${labelSize}px ${labelFont}`, fillStyle: labelColor.color, textAlign: "left" });
  const { width } = context.measureText(node.label);
  const [left, top] = inside(context, place(node, width, labelSize), width);
  context.fillText(node.label, left, top + labelSize);
}

const GAP = 6; // pixels between two names side by side: Chinese names would read as one

// A place of a name, moved sideways so that the border of the drawing does not cut the name.
function inside({ canvas }, [left, top], width) {
  return [Math.max(GAP, Math.min(left, canvas.clientWidth - width - GAP)), top];
}

const RING = 4; // pixels between a chosen node and the ring around it

function drawRing(context, { x, y, size }) {
  Object.assign(context, { strokeStyle: themeColor("--accent"), lineWidth: 2.5 });
  context.beginPath();
  context.arc(x, y, size + RING, 0, 2 * Math.PI);
  context.stroke();
}

// Where `drawName` writes a name: left, right, top and bottom, in pixels.
function nameBox(context, node, { labelSize, labelFont }, place) {
  context.font = `${labelSize}px ${labelFont}`;
  const { width } = context.measureText(node.label);
  const [left, top] = inside(context, place(node, width, labelSize), width);
  return { left: left - GAP / 2, right: left + width + GAP / 2, top, bottom: top + labelSize };
}

const nodeBox = ([_context, { x, y, size }]) => ({ left: x - size, right: x + size, top: y - size, bottom: y + size });

const overlap = (first, second) =>
  first.left < second.right && second.left < first.right && first.top < second.bottom && second.top < first.bottom;

// The key of an entity's node. Libraries keep nodes in plain objects, where the entity "constructor"
// would be taken for what every object has.
const keyOf = (name) => `=${name}`;

const LONGEST_LABEL = 28; // characters

// What relates two entities, in a few words; "" if the text only names them together.
function relationLabel({ predicate, keywords }) {
  const words = predicate ?? listed(keywords ?? []);
  if (STATING_NOTHING.has(words)) return "";
  const characters = [...words];
  return characters.length > LONGEST_LABEL ? `${characters.slice(0, LONGEST_LABEL).join("")}…` : words;
}

const themeColor = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

export class Drawing {
  #container;
  #graph = new Graph({ type: "undirected" });
  #worker = new Worker("/layout.js");
  #sigma;
  #round = 0;
  #onnode;
  #chosen;
  #centered; // the node in the middle, if one was chosen
  #type = "";
  #hovered; // the node or edge under the pointer
  #names = []; // of the nodes in view: what `drawName` takes

  // `onnode` gets the name of a node that is clicked.
  constructor(container, onnode) {
    this.#container = container;
    this.#onnode = onnode;
    this.#worker.onmessage = ({ data }) => data.round === this.#round && this.#move(data.places);
    new ResizeObserver(() => this.#shown()).observe(container);
    addEventListener("themechange", () => this.#restyle());
  }

  clear() {
    this.#centered = undefined;
    this.#sigma?.getCamera().setState({ x: 0.5, y: 0.5, ratio: 1, angle: 0 });
    this.#round++;
    this.#graph.clear();
  }

  // Add nodes ({name, type, degree}) around one that is drawn, and relations; false if it is full.
  add(nodes, relations, around) {
    this.#chosen = keyOf(around);
    const center = this.#graph.hasNode(this.#chosen) ? this.#graph.getNodeAttributes(this.#chosen) : { x: 0, y: 0 };
    const fresh = nodes.filter(({ name }) => !this.#graph.hasNode(keyOf(name)));
    const room = MOST_NODES - this.#graph.order;
    for (const [at, node] of fresh.slice(0, room).entries()) {
      const [x, y] = [center.x + Math.cos(at), center.y + Math.sin(at)]; // until they are laid out
      const size = 5 + Math.min(9, 2 * Math.log2(1 + (node.degree ?? 1)));
      this.#graph.addNode(keyOf(node.name), { x, y, size, label: node.name, kind: node.type });
    }
    for (const relation of relations) {
      const [source, target] = [keyOf(relation.source), keyOf(relation.target)];
      const isDrawn = this.#graph.hasNode(source) && this.#graph.hasNode(target);
      const size = 1.5 + Math.min(3, Math.log2(relation.weight ?? 1) / 2);
      if (isDrawn && source !== target) this.#graph.mergeEdge(source, target, { size: Math.max(1.5, size), words: relationLabel(relation) });
    }
    this.#layout();
    return fresh.length <= room;
  }

  // Take away the nodes around one that have no other relation in the drawing.
  collapse(name) {
    const key = keyOf(name);
    if (!this.#graph.hasNode(key)) return;
    for (const other of this.#graph.neighbors(key)) {
      if (this.#graph.degree(other) === 1) this.#graph.dropNode(other);
    }
    this.#layout();
  }

  // Take away a node with its edges.
  remove(name) {
    if (this.#graph.hasNode(keyOf(name))) this.#graph.dropNode(keyOf(name));
  }

  // Move a node to the middle, now and when it has been laid out.
  center(name) {
    this.#centered = keyOf(name);
    this.#sigma?.refresh();
    this.#toCenter();
  }

  #toCenter() {
    const place = this.#graph.hasNode(this.#centered) && this.#sigma?.getNodeDisplayData(this.#centered);
    if (place) this.#sigma.getCamera().animate({ x: place.x, y: place.y, ratio: this.#reach(place) });
  }

  // How much of the drawing is shown around the chosen node: its neighbours are in view, and little more.
  #reach({ x, y }) {
    const neighbours = this.#graph.neighbors(this.#centered).map((key) => this.#sigma.getNodeDisplayData(key));
    const furthest = Math.max(0, ...neighbours.map((place) => Math.max(Math.abs(place.x - x), Math.abs(place.y - y))));
    return Math.min(FURTHEST, Math.max(NEAREST, 2 * furthest));
  }

  // Show the entities of one type only, and the chosen one; all for "".
  showOnly(type) {
    this.#type = type;
    this.#sigma?.refresh();
  }

  // The types in the drawing, in the order of their colors; those without a color of their own come last.
  types() {
    const drawn = new Set(this.#graph.mapNodes((_key, { kind }) => kind));
    const colored = [...colors.keys()].filter((type) => drawn.has(type));
    return [...new Set([...colored, ...drawn])];
  }

  #layout() {
    const nodes = this.#graph.mapNodes((key, { x, y, size }) => ({ key, x, y, size }));
    const edges = this.#graph.mapEdges((_edge, _attributes, source, target) => [source, target]);
    if (nodes.length) this.#worker.postMessage({ nodes, edges, round: ++this.#round });
    this.#shown();
  }

  #move(places) {
    this.#graph.updateEachNodeAttributes((key, attributes) => ({ ...attributes, ...places[key] }));
    if (!this.#centered) return;
    this.#sigma?.refresh();
    this.#toCenter();
  }

  #shown() {
    if (!this.#container.clientWidth || !this.#graph.order) return;
    if (this.#sigma) this.#sigma.resize().refresh();
    else this.#start();
  }

  #start() {
    try {
      this.#sigma = new Sigma(this.#graph, this.#container, {
        allowInvalidContainer: true,
        labelFont: getComputedStyle(document.body).fontFamily,
        labelRenderedSizeThreshold: 3,
        labelGridCellSize: 40,
        stagePadding: 64,
        renderEdgeLabels: true,
        enableEdgeEvents: true,
        edgeLabelFont: getComputedStyle(document.body).fontFamily,
        nodeReducer: (key, attributes) => this.#styled(key, attributes),
        edgeReducer: (key, attributes) => this.#styledEdge(key, attributes),
        defaultDrawNodeLabel: (...name) => this.#names.push(name),
        defaultDrawNodeHover: (...name) => drawName(...name),
      });
    } catch (error) {
      console.warn(error);
      this.#container.replaceChildren(h("p", { class: "soft", t: "no_webgl" }));
      return;
    }
    this.#sigma.on("afterRender", () => this.#writeNames());
    this.#sigma.on("clickNode", ({ node }) => this.#onnode(this.#graph.getNodeAttribute(node, "label")));
    for (const kind of ["Node", "Edge"]) {
      this.#sigma.on(`enter${kind}`, (event) => this.#hover(event[kind.toLowerCase()]));
      this.#sigma.on(`leave${kind}`, () => this.#hover());
    }
    this.#restyle();
  }

  #hover(key) {
    this.#hovered = key;
    this.#sigma.refresh({ skipIndexation: true });
  }

  #restyle() {
    const color = themeColor("--ink");
    this.#sigma?.setSettings({ defaultEdgeColor: themeColor("--edge"), labelColor: { color }, edgeLabelColor: { color } });
  }

  // Write the names, those of the larger nodes first, each where it lies over no node and no other name; a name
  // without such a place is left out.
  #writeNames() {
    const boxes = this.#names.map(nodeBox);
    const rank = ([_context, { size, forceLabel }]) => (forceLabel ? Infinity : size);
    for (const [context, node] of this.#names) if (node.forceLabel) drawRing(context, node);
    for (const name of this.#names.sort((left, right) => rank(right) - rank(left))) {
      const isFree = (place) => !boxes.some((taken) => overlap(taken, nameBox(...name, place)));
      const place = PLACES.find(isFree) ?? (rank(name) === Infinity && PLACES[0]);
      if (!place) continue;
      drawName(...name, place);
      boxes.push(nameBox(...name, place));
    }
    this.#names = [];
  }

  // An edge says what relates its ends while the pointer is on it or on an end.
  #styledEdge(key, attributes) {
    const named = key === this.#hovered || this.#graph.extremities(key).includes(this.#hovered);
    return named ? { ...attributes, color: themeColor("--accent"), label: attributes.words, forceLabel: true } : attributes;
  }

  #styled(key, attributes) {
    const chosen = key === this.#chosen;
    const hidden = !chosen && this.#type !== "" && attributes.kind !== this.#type;
    const size = attributes.size * Math.min(1, this.#container.clientWidth / FULL_WIDTH);
    return { ...attributes, size, color: colorOf(attributes.kind), hidden, forceLabel: chosen };
  }
}
