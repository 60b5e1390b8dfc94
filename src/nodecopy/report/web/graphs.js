"use strict";
// The observed graph beside one of its samples: the same layout and the same view of both.

const OBSERVED = 1, FROM_SOURCE = 2, FROM_TARGET = 4;
const MAX_EDGES_IN_MOTION = 6000; // while the view moves, of more edges only some are drawn
const MAX_CHIPS = 24;
const graphViews = new Map();

class GraphView {
  constructor(section) {
    this.data = section;
    this.n = section.ids.length;
    this.number = new Map(section.ids.map((id, i) => [id, i]));
    this.sample = Math.min(1, section.graphs.length - 1);
    this.colouring = section.colours.length ? 0 : -1;
    this.selected = this.hovered = -1;
    this.view = d3.zoomIdentity;
    this.incident = section.graphs.map(() => null);
    const degree = new Uint32Array(this.n);
    for (const end of section.graphs[0].edges) degree[end]++;
    const maxDegree = d3.max(degree) || 1, base = this.n <= 100 ? 5 : this.n <= 600 ? 3.2 : 2;
    this.radius = Float32Array.from(degree, (d) => base * (0.8 + 1.1 * Math.sqrt(d / maxDegree)));
    this.extent = [d3.extent(section.x), d3.extent(section.y)];
    const ratio = (this.extent[1][1] - this.extent[1][0]) / Math.max(this.extent[0][1] - this.extent[0][0], 1);
    this.shape = Math.min(1, Math.max(0.55, ratio + 0.06)); // height of a panel for its width
    this.element = this.build();
    graphViews.set(section.title, this);
  }

  build() {
    const { data } = this;
    this.detail = make("div", { class: "detail panel", "aria-live": "polite" });
    this.legend = make("ul", { class: "legend" });
    this.panels = [this.panel(0), ...(data.graphs.length > 1 ? [this.panel(this.sample)] : [])];
    const part = this.n < data.n_nodes
      ? make("p", { class: "quiet" }, `Only a part of the graph is drawn: the first ${count(this.n)} of ${count(data.n_nodes)} nodes that a random walk visited. The statistics are those of the whole graph.`)
      : null;
    const body = make("div", {}, part, this.tools(),
      make("div", { class: "pair" }, ...this.panels.map((panel) => panel.figure)), this.legend, this.detail);
    this.panels.forEach((panel) => this.connect(panel));
    new ResizeObserver(() => this.resize()).observe(this.panels[0].canvas);
    this.describe();
    return body;
  }

  panel(graph) {
    const canvas = make("canvas", { tabindex: 0, style: `aspect-ratio:${1 / this.shape}`, role: "application", "aria-roledescription": "graph" });
    const caption = make("figcaption");
    const panel = { graph, canvas, caption, figure: make("figure", { class: "graph" }, caption, canvas) };
    this.caption(panel);
    return panel;
  }

  caption(panel) {
    const graph = this.data.graphs[panel.graph];
    const drawn = graph.edges.length / 2, part = drawn < graph.n_edges ? `, ${count(drawn)} drawn` : "";
    panel.caption.replaceChildren(graph.title + " ", make("span", {}, plural(graph.n_edges, "edge") + part));
    panel.canvas.setAttribute("aria-label", `${graph.title}: ${plural(this.data.n_nodes, "node")}, ${plural(graph.n_edges, "edge")}. ` +
      "Arrow keys move, plus and minus zoom, 0 shows the whole graph, N and P select the next and the previous node, Escape clears the selection.");
  }

  tools() {
    const { data } = this;
    const select = (label, options, chosen, act) => make("label", {}, label,
      make("select", { onchange: (event) => act(+event.target.value) },
        ...options.map((text, i) => make("option", { value: i, selected: i === chosen }, text))));
    const list = make("datalist", { id: `nodes-${graphViews.size}` }, ...data.ids.slice(0, 3000).map((id) => make("option", { value: id })));
    const find = make("input", { type: "search", list: list.id, placeholder: "id", oninput: (event) => {
      const node = this.number.get(event.target.value);
      if (node !== undefined) this.select(node, true);
    } });
    const button = (text, label, act) => make("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    return make("div", { class: "tools" },
      data.graphs.length > 2 ? select("sample", data.graphs.slice(1).map((graph) => graph.title), 0, (i) => this.show(i + 1)) : null,
      data.colours.length > 1 ? select("colour by", data.colours.map((one) => one.name), this.colouring, (i) => { this.colouring = i; this.describe(); this.draw(); }) : null,
      make("label", {}, "find a node", find), list,
      make("span", { class: "buttons" }, button("−", "zoom out", () => this.scaleBy(1 / 1.5)), button("+", "zoom in", () => this.scaleBy(1.5)), button("⤢", "show the whole graph", () => this.moveTo(d3.zoomIdentity))));
  }

  show(sample) {
    this.sample = this.panels[1].graph = sample;
    this.caption(this.panels[1]);
    this.describe();
    this.draw();
  }

  connect(panel) {
    const { canvas } = panel;
    // The wheel scrolls the page until the graph has the focus; one finger always scrolls.
    panel.zoom = d3.zoom().scaleExtent([0.5, 60])
      .filter((event) => event.type === "wheel" ? event.ctrlKey || document.activeElement === canvas : event.touches ? event.touches.length > 1 : !event.button)
      .on("zoom", (event) => {
        if (event.transform === this.view) return;
        this.view = event.transform;
        for (const other of this.panels) other.canvas.__zoom = this.view;
        this.draw(true);
      });
    d3.select(canvas).call(panel.zoom).on("dblclick.zoom", null)
      .on("pointermove", (event) => event.buttons || this.hover(this.at(panel, event)))
      .on("pointerleave", () => this.hover(-1))
      .on("pointerdown.focus", () => canvas.focus({ preventScroll: true }))
      .on("click", (event) => this.select(this.at(panel, event)))
      .on("keydown", (event) => this.key(event));
  }

  key(event) {
    const step = 60, moves = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    const acts = {
      "+": () => this.scaleBy(1.4), "=": () => this.scaleBy(1.4), "-": () => this.scaleBy(1 / 1.4), "0": () => this.moveTo(d3.zoomIdentity),
      n: () => this.select((this.selected + 1) % this.n, true), p: () => this.select((Math.max(this.selected, 0) + this.n - 1) % this.n, true), Escape: () => this.select(-1),
    };
    const act = moves[event.key] ? () => this.moveTo(this.view.translate(moves[event.key][0] / this.view.k, moves[event.key][1] / this.view.k)) : acts[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  }

  moveTo(view) { d3.select(this.panels[0].canvas).call(this.panels[0].zoom.transform, view); }
  scaleBy(factor) { d3.select(this.panels[0].canvas).call(this.panels[0].zoom.scaleBy, factor); }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.panels[0].canvas;
    if (!width || !height) return;
    const dots = Math.min(window.devicePixelRatio || 1, 2), margin = 24;
    [this.width, this.height, this.dots] = [width, height, dots];
    const [[left, right], [bottom, top]] = this.extent;
    const scale = Math.min((width - 2 * margin) / Math.max(right - left, 1), (height - 2 * margin) / Math.max(top - bottom, 1));
    this.px = Float32Array.from(this.data.x, (x) => width / 2 + scale * (x - (left + right) / 2));
    this.py = Float32Array.from(this.data.y, (y) => height / 2 - scale * (y - (bottom + top) / 2));
    this.tree = d3.quadtree(d3.range(this.n), (i) => this.px[i], (i) => this.py[i]);
    for (const { canvas } of this.panels) { canvas.width = width * dots; canvas.height = height * dots; }
    this.paint();
  }

  at(panel, event) {
    const [x, y] = this.view.invert(d3.pointer(event, panel.canvas));
    const node = this.tree && this.tree.find(x, y, 14 / this.view.k);
    return node === undefined ? -1 : node;
  }

  hover(node) {
    if (node === this.hovered) return;
    this.hovered = node;
    for (const { canvas } of this.panels) canvas.title = node < 0 ? "" : this.data.ids[node];
    this.draw();
    if (this.selected < 0) this.describe();
  }

  select(node, centre = false) {
    this.selected = node;
    if (centre && node >= 0 && this.px) {
      const [x, y] = this.view.apply([this.px[node], this.py[node]]);
      if (x < 20 || y < 20 || x > this.width - 20 || y > this.height - 20) {
        this.moveTo(d3.zoomIdentity.translate(this.width / 2, this.height / 2).scale(this.view.k).translate(-this.px[node], -this.py[node]));
      }
    }
    this.describe();
    this.draw();
  }

  // The edges of a node in one of the graphs: [other end, number of the edge].
  edgesOf(graph, node) {
    if (!this.incident[graph]) {
      const lists = Array.from({ length: this.n }, () => []), { edges } = this.data.graphs[graph];
      for (let e = 0; e < edges.length; e += 2) {
        lists[edges[e]].push([edges[e + 1], e / 2]);
        if (edges[e] !== edges[e + 1]) lists[edges[e + 1]].push([edges[e], e / 2]); // a copied row may contain a self-loop
      }
      this.incident[graph] = lists;
    }
    return this.incident[graph][node];
  }

  // The row that a donor gives: its observed edges; in a directed graph its out-edges.
  rowOf(node) {
    const { edges } = this.data.graphs[0];
    return this.edgesOf(0, node).filter(([, edge]) => !this.data.directed || edges[2 * edge] === node);
  }

  // The origin of a neighbour in a sample: copied from the node's donor, or from the donor of the neighbour.
  origin(graph, node, edge) {
    const { edges, flags } = this.data.graphs[graph], flag = +flags[edge];
    const own = edges[2 * edge] === node ? FROM_SOURCE : FROM_TARGET;
    return { copied: (flag & own) > 0, observed: (flag & OBSERVED) > 0 };
  }

  draw(moving = false) {
    this.moving = moving;
    clearTimeout(this.later);
    if (moving) this.later = setTimeout(() => this.draw(), 140);
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.paint(); });
  }

  paint() {
    if (!this.px) return;
    const focus = this.hovered >= 0 ? this.hovered : this.selected;
    this.fills = this.colours();
    for (const panel of this.panels) this.paintPanel(panel, focus);
  }

  colours() {
    const one = this.data.colours[this.colouring];
    if (!one) return new Array(this.n).fill(PALETTE[0]);
    if (one.codes) {
      const table = [...one.classes.keys()].map((code) => classColour(code, one.classes.length)), unknown = colour("edge");
      return one.codes.map((code) => code < 0 ? unknown : table[code]);
    }
    const scale = d3.scaleSequential(d3.interpolateViridis).domain([0, d3.max(one.values) || 1]);
    return one.values.map((value) => scale(value));
  }

  paintPanel(panel, focus) {
    const { px, py, view, dots } = this, graph = this.data.graphs[panel.graph], pen = panel.canvas.getContext("2d");
    pen.setTransform(dots, 0, 0, dots, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    pen.setTransform(dots * view.k, 0, 0, dots * view.k, dots * view.x, dots * view.y);
    const thin = 1 / view.k, { edges, flags } = graph, n = edges.length / 2;
    const stride = this.moving ? Math.max(1, Math.ceil(n / MAX_EDGES_IN_MOTION)) : 1;
    const fade = (0.07 + 0.68 * Math.min(1, 500 / Math.max(n, 1))) * (focus >= 0 ? 0.25 : 1);
    const lines = (wanted, stroke, width, alpha) => {
      pen.beginPath();
      for (let e = 0; e < n; e += stride) {
        if (!wanted(e)) continue;
        pen.moveTo(px[edges[2 * e]], py[edges[2 * e]]);
        pen.lineTo(px[edges[2 * e + 1]], py[edges[2 * e + 1]]);
      }
      Object.assign(pen, { strokeStyle: stroke, lineWidth: width * thin, globalAlpha: alpha });
      pen.stroke();
    };
    lines((e) => !flags || +flags[e] & OBSERVED, colour("edge"), 1, fade);
    if (flags) lines((e) => !(+flags[e] & OBSERVED), colour("new"), 1, fade);
    const near = focus >= 0 ? this.paintFocus(pen, panel.graph, focus, thin) : null;
    const size = Math.min(1, Math.max(0.35, 1 / Math.sqrt(view.k))); // nodes grow more slowly than distances
    const rim = this.n <= 600 ? colour("panel") : null;
    for (let i = 0; i < this.n; i++) {
      pen.globalAlpha = near && !near.has(i) ? 0.25 : 1;
      pen.fillStyle = this.fills[i];
      pen.beginPath();
      pen.arc(px[i], py[i], this.radius[i] * size, 0, 2 * Math.PI);
      pen.fill();
      if (rim) { pen.strokeStyle = rim; pen.lineWidth = thin; pen.stroke(); }
    }
    pen.globalAlpha = 1;
    if (near) this.names(pen, focus, near, size);
  }

  // The edges of one node: in the observed graph its own and those of its donor; in a sample by their origin.
  paintFocus(pen, graph, node, thin) {
    const near = new Set([node]), { px, py } = this, donor = this.donorOf(node);
    const line = (from, to, stroke, dashed = false, width = 2) => {
      Object.assign(pen, { strokeStyle: stroke, fillStyle: stroke, lineWidth: width * thin, globalAlpha: 1 });
      pen.setLineDash(dashed ? [5 * thin, 4 * thin] : []);
      pen.beginPath();
      if (from === to) {
        pen.arc(px[from], py[from] - 12 * thin, 12 * thin, 0, 2 * Math.PI);
      } else {
        pen.moveTo(px[from], py[from]);
        pen.lineTo(px[to], py[to]);
      }
      pen.stroke();
      near.add(from).add(to);
      if (this.data.directed && from !== to && !dashed) arrow(from, to);
    };
    const arrow = (from, to) => {
      const angle = Math.atan2(py[to] - py[from], px[to] - px[from]), back = this.radius[to] + 2 * thin;
      const x = px[to] - back * Math.cos(angle), y = py[to] - back * Math.sin(angle);
      pen.beginPath();
      for (const turn of [0, 2.7, -2.7]) pen.lineTo(x + (turn && 9 * thin * Math.cos(angle + turn)), y + (turn && 9 * thin * Math.sin(angle + turn)));
      pen.fill();
    };
    const edgeLine = (which, number, ...style) => line(this.data.graphs[which].edges[2 * number], this.data.graphs[which].edges[2 * number + 1], ...style);
    const copies = typeof donor === "number" && donor !== node;
    if (graph === 0) {
      if (copies) for (const [, edge] of this.rowOf(donor)) edgeLine(0, edge, colour("copied"), false, 1.5);
      for (const [, edge] of this.edgesOf(0, node)) edgeLine(0, edge, colour("own"));
    } else {
      for (const [, edge] of this.edgesOf(graph, node)) edgeLine(graph, edge, colour(this.origin(graph, node, edge).copied ? "copied" : "new"));
    }
    if (copies) line(node, donor, colour("copied"), true, 1);
    pen.setLineDash([]);
    return near;
  }

  names(pen, focus, near, size) {
    const { view, dots } = this, donor = this.donorOf(focus);
    pen.setTransform(dots, 0, 0, dots, 0, 0);
    pen.font = "600 12px system-ui, sans-serif";
    pen.lineWidth = 3;
    pen.lineJoin = "round";
    const named = near.size <= 40 && this.n <= 600 ? near : new Set([focus, ...(typeof donor === "number" ? [donor] : [])]);
    for (const node of named) {
      const [x, y] = view.apply([this.px[node], this.py[node]]), away = this.radius[node] * size * view.k + 4;
      if (node === focus || node === donor) {
        pen.strokeStyle = colour(node === focus ? "ink" : "copied");
        pen.lineWidth = 2;
        pen.beginPath();
        pen.arc(x, y, away, 0, 2 * Math.PI);
        pen.stroke();
        pen.lineWidth = 3;
      }
      const text = this.data.ids[node].slice(0, 40), left = x + away + 3 + pen.measureText(text).width > this.width;
      pen.textAlign = left ? "right" : "left";
      pen.strokeStyle = colour("panel");
      pen.strokeText(text, left ? x - away - 3 : x + away + 3, y + 4);
      pen.fillStyle = colour("ink");
      pen.fillText(text, left ? x - away - 3 : x + away + 3, y + 4);
    }
  }

  donorOf(node) {
    const graph = this.data.graphs[this.sample];
    return graph.donors ? graph.donors[node] : null;
  }

  // Writes the legend, and the description of the node in focus.
  describe() {
    this.legend.replaceChildren(...this.legendEntries());
    const node = this.selected >= 0 ? this.selected : this.hovered;
    if (node < 0) {
      this.detail.replaceChildren(make("p", {}, "Hover over a node to see its id. Select it to see its donor and its neighbours."),
        make("p", { class: "quiet" }, "Drag to move. Zoom with the buttons, with two fingers, or with the wheel after a click on the graph. Keys: arrows move, + and − zoom, 0 shows the whole graph, N and P select nodes."));
      return;
    }
    const graph = this.data.graphs[this.sample], id = this.data.ids[node], own = this.edgesOf(0, node).map(([other]) => [other, ""]);
    const facts = this.data.colours.map((one) => one.codes ? `${one.name}: ${one.codes[node] < 0 ? "none" : one.classes[one.codes[node]]}` : `${one.name}: ${formatValue(one.values[node])}`);
    const lines = [make("p", {}, make("b", {}, id), facts.length ? ` · ${facts.join(" · ")}` : ""), this.chips(`${plural(own.length, "observed neighbour")}${this.n < this.data.n_nodes ? " among the drawn nodes" : ""}`, own)];
    if (graph.donors) {
      const donor = this.donorOf(node), name = typeof donor === "number" ? this.data.ids[donor] : donor;
      const neighbours = this.edgesOf(this.sample, node).map(([other, edge]) => [other, this.origin(this.sample, node, edge).copied ? "copied" : "new"]);
      const origin = donor === node ? "it keeps its own neighbours" : `its donor is ${name}${typeof donor === "number" ? "" : " (not drawn)"}`;
      const copied = neighbours.filter(([, kind]) => kind === "copied").length;
      lines.push(this.chips(`In ${graph.title}, ${origin}: ${plural(copied, "neighbour")} ${donor === node ? "kept" : "copied from the donor"}` +
        (neighbours.length > copied ? `, ${neighbours.length - copied} from the donors of its neighbours` : ""), neighbours.sort((a, b) => d3.ascending(a[1], b[1]))));
    }
    this.detail.replaceChildren(...lines);
  }

  chips(text, nodes) {
    const list = nodes.slice(0, MAX_CHIPS).map(([node, kind]) => make("li", {},
      make("button", { type: "button", class: kind, onclick: () => this.select(node, true) }, this.data.ids[node])));
    if (nodes.length > MAX_CHIPS) list.push(make("li", {}, `and ${nodes.length - MAX_CHIPS} more`));
    return make("div", {}, make("span", { class: "quiet" }, text), make("ul", { class: "chips" }, ...list));
  }

  legendEntries() {
    const one = this.data.colours[this.colouring], entries = [];
    const dot = (fill) => make("i", { style: `background:${fill}` });
    const line = (name, dashed = "") => make("i", { class: `line ${dashed}`, style: `border-color:var(--${name})` });
    if (one && one.codes) {
      one.classes.slice(0, 20).forEach((name, code) => entries.push(legendEntry(dot(classColour(code, one.classes.length)), name)));
      if (one.classes.length > 20) entries.push(legendEntry("", `and ${one.classes.length - 20} more`));
      if (one.codes.includes(-1)) entries.push(legendEntry(dot(colour("edge")), "unlabelled"));
    } else if (one) {
      const steps = d3.range(0, 1.01, 0.25).map(d3.interpolateViridis).join(",");
      entries.push(legendEntry(make("i", { class: "ramp", style: `background:linear-gradient(90deg,${steps})` }), `${one.name}, 0 to ${formatValue(d3.max(one.values))}`));
    }
    if (this.selected >= 0 || this.hovered >= 0) {
      entries.push(legendEntry(line("own"), "observed edge of the node"), legendEntry(line("copied"), "edge of the donor, copied in the sample"), legendEntry(line("new"), "edge copied from the donor of the other end"), legendEntry(line("copied", "dashed"), "from the node to its donor"));
    } else {
      entries.push(legendEntry(line("edge"), "observed edge"));
      if (this.data.graphs.length > 1) entries.push(legendEntry(line("new"), "new edge"));
    }
    return entries;
  }
}
