// A worker: places the nodes of a graph by their forces, away from the thread that draws.

import Graph from "graphology";
import forceAtlas2 from "graphology-layout-forceatlas2";

const ITERATIONS = 300;

onmessage = ({ data: { nodes, edges, round } }) => {
  const graph = new Graph({ type: "undirected" });
  for (const { key, ...attributes } of nodes) graph.addNode(key, attributes);
  for (const [source, target] of edges) graph.mergeEdge(source, target);
  const settings = { ...forceAtlas2.inferSettings(graph), gravity: 0.6, scalingRatio: 12 };
  postMessage({ round, places: forceAtlas2(graph, { iterations: ITERATIONS, settings }) });
};
