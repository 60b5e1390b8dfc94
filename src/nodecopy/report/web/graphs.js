"use strict";
// The observed graph beside one of its samples: the same layout and the same view of both.

const OBSERVED = 1;
const FROM_SOURCE = 2;
const FROM_TARGET = 4; // flags of a sampled edge
const MAX_CHIPS = 24;
const MAX_CLASSES_SHOWN = 20;
const graphViews = new Map();

// Returns the two ends of every edge, one after the other.
function decodeEdges({ counts, steps }) {
  const edges = new Uint32Array(2 * steps.length);
  let e = 0;
  counts.forEach((n, source) => {
    for (let target = source, k = 0; k < n; k++, e++) {
      target += steps[e];
      edges.set([source, target], 2 * e);
    }
  });
  return edges;
}

class GraphView {
  constructor(section) {
    this.data = section;
    this.key = `g${graphViews.size}`;
    this.n = section.ids.length;
    this.number = new Map(section.ids.map((id, i) => [id, i]));
    for (const graph of section.graphs) graph.edges = decodeEdges(graph);
    this.sample = Math.min(1, section.graphs.length - 1);
    this.colouring = section.colours.length ? 0 : -1;
    this.selected = this.hovered = this.onlyClass = -1;
    this.view = d3.zoomIdentity;
    this.incident = section.graphs.map(() => null);
    const degree = new Uint32Array(this.n);
    for (const end of section.graphs[0].edges) degree[end]++;
    const maxDegree = d3.max(degree) || 1;
    const base = this.n <= 100 ? 5 : this.n <= 600 ? 3.2 : 2;
    this.radius = Float32Array.from(degree, (d) => base * (0.8 + 1.1 * Math.sqrt(d / maxDegree)));
    this.extent = [d3.extent(section.x), d3.extent(section.y)];
    const ratio = (this.extent[1][1] - this.extent[1][0]) / Math.max(this.extent[0][1] - this.extent[0][0], 1);
    this.shape = Math.min(1, Math.max(0.55, ratio + 0.06)); // height of a panel for its width
    graphViews.set(section.title, this);
    this.element = this.build();
  }

  build() {
    const { data } = this;
    this.detail = make("div", { class: "detail panel", "aria-live": "polite" });
    this.legend = make("ul", { class: "legend" });
    this.panels = [this.panel(0), ...(data.graphs.length > 1 ? [this.panel(this.sample)] : [])];
    const part =
      this.n < data.n_nodes
        ? note(
            `Only a part of the graph is drawn: the first ${count(this.n)} of ${count(data.n_nodes)} nodes that a random walk visited. The statistics are those of the whole graph.`,
          )
        : null;
    const body = make(
      "div",
      {},
      part,
      this.tools(),
      make("div", { class: "pair" }, ...this.panels.map((panel) => panel.figure)),
      this.legend,
      this.detail,
      downloads(data.title, {
        rows: () => this.edgeRows(),
        pictures: () => this.panels.map((panel) => [data.graphs[panel.graph].title, this.picture(panel)]),
      }),
    );
    this.panels.forEach((panel) => this.connect(panel));
    new ResizeObserver(() => this.resize()).observe(this.panels[0].canvas);
    this.describe();
    this.restore();
    return body;
  }

  restore() {
    restoring(`${this.key}.sample`, (text) => {
      if (this.data.graphs[+text] && +text) this.show(+text);
    });
    restoring(`${this.key}.colour`, (text) => {
      if (this.data.colours[+text]) this.colourBy(+text);
    });
    restoring(`${this.key}.class`, (text) => this.showClass(text === "" ? -1 : +text));
    restoring(`${this.key}.node`, (text) => this.select(this.number.get(text) ?? -1));
    restoring(`${this.key}.view`, (text) => {
      const [k, x, y] = text.split(",").map(Number);
      this.wanted = k > 0 && Number.isFinite(x + y) ? [k, x, y] : null; // shares of the panel, which may have another size
      if (this.width && this.wanted) this.moveTo(d3.zoomIdentity.translate(x * this.width, y * this.height).scale(k));
    });
  }

  panel(graph) {
    const canvas = make("canvas", {
      tabindex: 0,
      style: `aspect-ratio:${1 / this.shape}`,
      role: "application",
      "aria-roledescription": "graph",
    });
    const caption = make("figcaption");
    const panel = { graph, canvas, caption, figure: make("figure", { class: "graph" }, caption, canvas) };
    this.caption(panel);
    return panel;
  }

  caption(panel) {
    const graph = this.data.graphs[panel.graph];
    const drawn = graph.edges.length / 2;
    const part = drawn < graph.n_edges ? `, ${count(drawn)} drawn` : "";
    panel.caption.replaceChildren(graph.title + " ", make("span", {}, plural(graph.n_edges, "edge") + part));
    panel.canvas.setAttribute(
      "aria-label",
      `${graph.title}: ${plural(this.data.n_nodes, "node")}, ${plural(graph.n_edges, "edge")}. ` +
        "Arrow keys move, plus and minus zoom, 0 shows the whole graph, N and P select the next and the previous node, Escape clears the selection.",
    );
  }

  tools() {
    const { data } = this;
    const select = (label, options, chosen, act) =>
      make(
        "select",
        { "aria-label": label, onchange: (event) => act(+event.target.value) },
        ...options.map((text, i) => make("option", { value: i, selected: i === chosen }, text)),
      );
    const labelled = (label, field) => make("label", {}, label, field);
    const list = make(
      "datalist",
      { id: `${this.key}-nodes` },
      ...data.ids.slice(0, 3000).map((id) => make("option", { value: id })),
    );
    const find = make("input", {
      type: "search",
      list: list.id,
      placeholder: "id",
      oninput: (event) => {
        const node = this.number.get(event.target.value);
        if (node !== undefined) this.select(node, true);
      },
    });
    this.sampleField = select(
      "sample",
      data.graphs.slice(1).map((graph) => graph.title),
      0,
      (i) => this.show(i + 1),
    );
    this.colourField = select(
      "colour by",
      data.colours.map((one) => one.name),
      this.colouring,
      (i) => this.colourBy(i),
    );
    return make(
      "div",
      { class: "tools" },
      data.graphs.length > 2 ? labelled("sample", this.sampleField) : null,
      data.colours.length > 1 ? labelled("colour by", this.colourField) : null,
      labelled("find a node", find),
      list,
      make(
        "span",
        { class: "buttons" },
        button("−", "zoom out", () => this.scaleBy(1 / 1.5)),
        button("+", "zoom in", () => this.scaleBy(1.5)),
        button("⤢", "show the whole graph", () => this.moveTo(d3.zoomIdentity)),
      ),
    );
  }

  show(sample) {
    this.sample = this.panels[1].graph = sample;
    this.sampleField.value = sample - 1;
    remember(`${this.key}.sample`, sample === 1 ? null : sample);
    this.caption(this.panels[1]);
    this.describe();
    this.draw();
  }

  colourBy(number) {
    if (number !== this.colouring) this.onlyClass = -1;
    this.colouring = this.colourField.value = number;
    remember(`${this.key}.colour`, number || null);
    this.describe();
    this.draw();
  }

  // Shows the nodes of one class, and their edges; -1 shows all.
  showClass(code) {
    this.onlyClass = this.data.colours[this.colouring]?.classes?.[code] === undefined ? -1 : code;
    remember(`${this.key}.class`, this.onlyClass < 0 ? null : code);
    this.describe();
    this.draw();
  }

  chosenCodes() {
    return this.onlyClass < 0 ? null : this.data.colours[this.colouring].codes;
  }

  connect(panel) {
    const { canvas } = panel;
    // The wheel scrolls the page until the graph has the focus; one finger always scrolls.
    panel.zoom = d3
      .zoom()
      .scaleExtent([0.5, 60])
      .filter((event) =>
        event.type === "wheel"
          ? event.ctrlKey || document.activeElement === canvas
          : event.touches
            ? event.touches.length > 1
            : !event.button,
      )
      .on("zoom", (event) => {
        if (event.transform === this.view) return;
        this.view = event.transform;
        for (const other of this.panels) other.canvas.__zoom = this.view;
        this.draw(true);
      });
    d3.select(canvas)
      .call(panel.zoom)
      .on("dblclick.zoom", null)
      .on("pointermove", (event) => event.buttons || this.hover(this.at(panel, event)))
      .on("pointerleave", () => this.hover(-1))
      .on("pointerdown.focus", () => canvas.focus({ preventScroll: true }))
      .on("click", (event) => this.select(this.at(panel, event)))
      .on("keydown", (event) => this.press(event));
  }

  press(event) {
    const step = 60;
    const moves = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    const acts = {
      "+": () => this.scaleBy(1.4),
      "=": () => this.scaleBy(1.4),
      "-": () => this.scaleBy(1 / 1.4),
      0: () => this.moveTo(d3.zoomIdentity),
      n: () => this.select((this.selected + 1) % this.n, true),
      p: () => this.select((Math.max(this.selected, 0) + this.n - 1) % this.n, true),
      Escape: () => this.select(-1),
    };
    const move = moves[event.key];
    const act = move
      ? () => this.moveTo(this.view.translate(move[0] / this.view.k, move[1] / this.view.k))
      : acts[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  }

  moveTo(view) {
    d3.select(this.panels[0].canvas).call(this.panels[0].zoom.transform, view);
  }
  scaleBy(factor) {
    d3.select(this.panels[0].canvas).call(this.panels[0].zoom.scaleBy, factor);
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.panels[0].canvas;
    if (!width || !height) return;
    const dots = Math.min(window.devicePixelRatio || 1, 2);
    const margin = 24;
    Object.assign(this, { width, height, dots, alphas: [] });
    const [[left, right], [bottom, top]] = this.extent;
    const scale = Math.min(
      (width - 2 * margin) / Math.max(right - left, 1),
      (height - 2 * margin) / Math.max(top - bottom, 1),
    );
    this.px = Float32Array.from(this.data.x, (x) => width / 2 + scale * (x - (left + right) / 2));
    this.py = Float32Array.from(this.data.y, (y) => height / 2 - scale * (y - (bottom + top) / 2));
    this.tree = d3.quadtree(
      d3.range(this.n),
      (i) => this.px[i],
      (i) => this.py[i],
    );
    for (const { canvas } of this.panels) {
      canvas.width = width * dots;
      canvas.height = height * dots;
    }
    if (this.wanted) {
      const [k, x, y] = this.wanted;
      this.wanted = null;
      this.moveTo(d3.zoomIdentity.translate(x * width, y * height).scale(k));
    }
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
    remember(`${this.key}.node`, node < 0 ? null : this.data.ids[node]);
    if (centre && node >= 0 && this.px) {
      const [x, y] = this.view.apply([this.px[node], this.py[node]]);
      if (x < 20 || y < 20 || x > this.width - 20 || y > this.height - 20) {
        this.moveTo(
          d3.zoomIdentity
            .translate(this.width / 2, this.height / 2)
            .scale(this.view.k)
            .translate(-this.px[node], -this.py[node]),
        );
      }
    }
    this.describe();
    this.draw();
  }

  // The edges of a node in one of the graphs: [other end, number of the edge].
  edgesOf(graph, node) {
    if (!this.incident[graph]) {
      const lists = Array.from({ length: this.n }, () => []);
      const { edges } = this.data.graphs[graph];
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
    const { edges, flags } = this.data.graphs[graph];
    const flag = +flags[edge];
    const own = edges[2 * edge] === node ? FROM_SOURCE : FROM_TARGET;
    return { copied: (flag & own) > 0, observed: (flag & OBSERVED) > 0 };
  }

  donorOf(node) {
    return this.data.graphs[this.sample].donors?.[node] ?? null;
  }

  draw(moving = false) {
    this.moving = moving;
    clearTimeout(this.later);
    if (moving)
      this.later = setTimeout(() => {
        this.draw();
        this.rememberView();
      }, 140);
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.paint();
    });
  }

  rememberView() {
    const { k, x, y } = this.view;
    const isWhole = k === 1 && !x && !y;
    remember(
      `${this.key}.view`,
      isWhole ? null : [k, x / this.width, y / this.height].map((value) => +value.toFixed(4)).join(","),
    );
  }

  paint() {
    if (!this.px) return;
    this.fills = this.colours();
    const focus = this.hovered >= 0 ? this.hovered : this.selected;
    for (const { graph, canvas } of this.panels) paintGraph(this, graph, canvas.getContext("2d"), this.dots, focus);
  }

  picture(panel) {
    const pen = new SvgPen(this.width, this.height);
    paintGraph(this, panel.graph, pen, 1, this.selected);
    return pen.svg.node();
  }

  edgeRows() {
    const { ids, graphs } = this.data;
    const rows = graphs.flatMap(({ title, edges, flags }) =>
      d3
        .range(edges.length / 2)
        .map((e) => [title, ids[edges[2 * e]], ids[edges[2 * e + 1]], !flags || +flags[e] & OBSERVED ? "yes" : "no"]),
    );
    return [["graph", "source", "target", "observed"], ...rows];
  }

  colours() {
    const one = this.data.colours[this.colouring];
    if (!one) return new Array(this.n).fill(colour("class-0"));
    if (one.codes) {
      const fills = one.classes.map((_, code) => resolve(classColour(code, one.classes.length)));
      const unknown = colour("edge");
      return one.codes.map((code) => (code < 0 ? unknown : fills[code]));
    }
    const most = d3.max(one.values) || 1;
    return one.values.map((value) => rampColour((value ?? 0) / most));
  }
}

BODIES.graphs = (section) => new GraphView(section).element;
