// The program: its source, its blocks of nodes, and the paths between them.

const BLOCK_WIDTH = 520;
const NODE_HEIGHT = 20;
const MIN_SCALE = 0.02;
const ASKING = new Set(["generation", "choice", "tool"]);
const SVG = "http://www.w3.org/2000/svg";

function programSection(data, show) {
  const program = data.program;
  const section = el("section", { class: "fill" });
  const sums = data.run ? lineSums(data.run) : new Map();
  const told = el("div", { class: "told", "aria-live": "polite" });
  const state = { scale: 1, nodes: new Map(), lines: new Map(), told, sums };
  const graph = el("div", { class: "graph", tabindex: "0", "aria-label": "The program's blocks" });
  const pick = graphPicker(program, (number) => draw(number));
  const draw = (number) => drawGraph(graph, program.graphs[number], state);
  section.append(el("div", { class: "tools" }, ...pick, ...zoomButtons(graph, state),
    el("span", { class: "legend", style: "margin:0" }, ...["generation", "choice", "tool"].map((kind) =>
      el("span", {}, el("i", { style: `background:var(--${kind})` }), kind)))));
  const panes = el("div", { class: "program" });
  if (Object.keys(program.sources).length) panes.append(sourcePane(program.sources, state));
  panes.append(graph);
  section.append(panes, told);
  told.append("Click a node or a line: both show what belongs to it.");
  show.push(() => draw(0));
  return section;
}

function graphPicker(program, draw) {
  if (program.graphs.length < 2) return [];
  const chosen = el("select", { "aria-label": "program", onchange: () => draw(Number(chosen.value)) });
  program.graphs.forEach((graph, number) => chosen.append(el("option", { value: number }, number ? `called ${number - 1}: ${graph.name}` : graph.name)));
  return [chosen];
}

function zoomButtons(graph, state) {
  const scaled = (scale) => {
    const plane = graph.querySelector(".plane");
    if (!plane) return;
    const before = state.scale;
    state.scale = Math.max(MIN_SCALE, Math.min(2, scale(plane)));
    const middle = (graph.scrollLeft + graph.clientWidth / 2) / before;
    plane.style.transform = `scale(${state.scale})`;
    graph.scrollLeft = middle * state.scale - graph.clientWidth / 2;
    graph.scrollTop *= state.scale / before;
  };
  const fitting = (plane) => Math.min(1, graph.clientWidth / plane.offsetWidth, graph.clientHeight / plane.offsetHeight);
  const buttons = [
    ["−", "smaller", () => state.scale * 0.8],
    ["+", "larger", () => state.scale * 1.25],
    ["1:1", "full size", () => 1],
    ["fit", "whole program", fitting],
  ];
  return buttons.map(([sign, word, scale]) =>
    el("button", { type: "button", "aria-label": word, onclick: () => scaled(scale) }, sign));
}

function lineSums(run) {
  const sums = new Map();
  for (const each of byLine(run)) {
    if (each.kind === "commit") continue;
    if (!sums.has(each.line)) sums.set(each.line, []);
    sums.get(each.line).push(each);
  }
  return sums;
}

function sumText(sums) {
  const add = (name) => sums.reduce((total, each) => total + (each[name] ?? 0), 0);
  const parts = [`${number(timesOf(sums))}×`];
  if (add("prompt")) parts.push(`${number(add("prompt"))} tokens, ${percent(add("cached"), add("prompt"))} cached`);
  if (add("completion")) parts.push(`${number(add("completion"))} generated`);
  if (add("cost")) parts.push(money(add("cost")));
  return parts.join(" · ");
}

const timesOf = (sums) => sums.reduce((total, each) => total + each.requests, 0);

function sourcePane(sources, state) {
  const pane = el("div", { class: "source", tabindex: "0", "aria-label": "The program's source" });
  for (const [file, lines] of Object.entries(sources)) {
    pane.append(el("h2", {}, file));
    lines.forEach((text, index) => {
      const place = `${file}:${index + 1}`;
      const sums = state.sums.get(place);
      const line = el("div", { class: "code" }, el("span", { class: "no" }, String(index + 1)),
        el("span", sums ? { class: "times", title: sumText(sums) } : { class: "times none" }, sums ? `${number(timesOf(sums))}×` : ""), shown(text));
      line.addEventListener("click", () => choose(state, place));
      state.lines.set(place, line);
      pane.append(line);
    });
  }
  return pane;
}

// How many generations, choices and calls stand on each line: inlined functions stand several times.
function nodesOfLines(graph) {
  const found = new Map();
  for (const [, kind, line] of graph.blocks.flatMap((block) => block.nodes)) {
    if (ASKING.has(kind)) found.set(line, (found.get(line) ?? 0) + 1);
  }
  return found;
}

function drawGraph(box, graph, state) {
  state.nodes = new Map();
  state.nodesOfLines = nodesOfLines(graph);
  for (const line of state.lines.values()) line.classList.remove("known");
  const layout = layoutOf(graph);
  const plane = el("div", { class: "plane", style: `width:${layout.width}px;height:${layout.height}px;transform:scale(${state.scale})` });
  plane.append(edgesOf(layout));
  graph.blocks.forEach((block, number) => plane.append(blockOf(block, layout.places[number], number, graph, state)));
  box.replaceChildren(plane);
  const entry = layout.places[0];
  if (entry) box.scrollLeft = entry.x * state.scale - box.clientWidth / 2;
}

function layoutOf(graph) {
  const drawing = new dagre.graphlib.Graph({ multigraph: true });
  drawing.setGraph({ rankdir: "TB", ranksep: 36, nodesep: 30, marginx: 16, marginy: 16, ranker: "longest-path" });
  drawing.setDefaultEdgeLabel(() => ({}));
  graph.blocks.forEach((block, number) => drawing.setNode(String(number), { width: BLOCK_WIDTH, height: NODE_HEIGHT * (block.nodes.length + 1) + 2 }));
  graph.edges.forEach(([from, to, label], index) => drawing.setEdge(String(from), String(to), { label, from, to }, String(index)));
  dagre.layout(drawing);
  const { width, height } = drawing.graph();
  return {
    width: width || BLOCK_WIDTH, height: height || NODE_HEIGHT,
    places: graph.blocks.map((_, number) => drawing.node(String(number))),
    edges: drawing.edges().map((edge) => drawing.edge(edge)),
  };
}

function svg(tag, given, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(given)) made.setAttribute(name, value);
  if (text) made.textContent = text;
  return made;
}

function edgesOf(layout) {
  const drawing = svg("svg", { width: layout.width, height: layout.height, "aria-hidden": "true" });
  const arrow = svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" });
  arrow.append(svg("path", { d: "M0,0 L8,4 L0,8 z", style: "fill:var(--faint);stroke:none" }));
  const defs = svg("defs", {});
  defs.append(arrow);
  drawing.append(defs);
  for (const edge of layout.edges) {
    const [first, ...rest] = edge.points;
    const isBack = rest.length && rest[rest.length - 1].y < first.y;
    const path = `M${first.x},${first.y} ${rest.map((point) => `L${point.x},${point.y}`).join(" ")}`;
    drawing.append(svg("path", { d: path, class: isBack ? "back" : "", "marker-end": "url(#arrow)" }));
    if (edge.label) drawing.append(svg("text", { x: first.x + 6, y: first.y + (isBack ? -5 : 14) }, oneLine(edge.label, 40)));
  }
  return drawing;
}

function blockOf(block, place, number, graph, state) {
  const params = block.params.join(", ");
  const title = number ? `${block.name}(${params})` : `${graph.name}(${graph.params.join(", ")})`;
  const box = el("div", { class: "block", style: `left:${place.x - place.width / 2}px;top:${place.y - place.height / 2}px;width:${place.width}px;height:${place.height}px` },
    el("div", { class: "head", title: oneLine(title, 1000) }, shown(oneLine(title, 400))));
  for (const node of block.nodes) box.append(nodeOf(node, state));
  return box;
}

function nodeOf([text, kind, line, name], state) {
  const sums = (state.sums.get(line) ?? []).filter((each) => each.name === name || (kind === "tool" && each.kind === "tool"));
  const isShared = state.nodesOfLines.get(line) > 1;
  const row = el("div", { class: `node ${kind}`, tabindex: "-1" }, el("span", { class: "what" }, shown(oneLine(text, 160))),
    ASKING.has(kind) && sums.length ? el("span", { class: "count" }, `${isShared ? "line: " : ""}${sumText(sums)}`) : null);
  row.addEventListener("click", () => choose(state, line, text, row));
  if (line) {
    if (!state.nodes.has(line)) state.nodes.set(line, []);
    state.nodes.get(line).push(row);
    state.lines.get(line)?.classList.add("known");
  }
  return row;
}

function choose(state, place, text, node) {
  for (const each of document.querySelectorAll(".node.picked, .code.picked")) each.classList.remove("picked");
  const nodes = state.nodes.get(place) ?? (node ? [node] : []);
  nodes.forEach((each) => each.classList.add("picked"));
  const line = state.lines.get(place);
  line?.classList.add("picked");
  if (text === undefined) nodes[0]?.scrollIntoView({ block: "center" });
  else line?.scrollIntoView({ block: "center" });
  const sums = state.sums.get(place);
  const told = text ?? (nodes.length ? `${nodes.length} nodes` : "no node is of this line");
  state.told.replaceChildren(el("pre", {}, shown(told)), el("div", { class: "note" }, `${place || "of no line"}${sums ? ` · ${sumText(sums)}` : ""}`));
}
