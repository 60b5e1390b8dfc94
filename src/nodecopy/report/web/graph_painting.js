"use strict";
// How a GraphView is painted, with the context of a canvas or an SvgPen.

const MAX_EDGES_IN_MOTION = 6000; // while the view moves, of more edges only some are drawn
const EDGES_PER_STROKE = 8; // what overlaps within one stroke is not darker
const INK = [0.2, 0.12, 0.08];
const MIN_ALPHA = 0.02;
const MAX_ALPHA = 0.75;
const MANY_EDGES = 500; // ink of short, medium and long edges per area; limits

// Returns the opacity of the edges of a graph: the more of the panel they would cover, the fainter, long ones first.
function edgeAlphas(view, edges) {
  const { px, py, width, height } = view;
  const n = edges.length / 2;
  const lengths = new Float32Array(n);
  const bands = new Uint8Array(n);
  const totals = [0, 0, 0];
  for (let e = 0; e < n; e++) {
    lengths[e] = Math.hypot(px[edges[2 * e]] - px[edges[2 * e + 1]], py[edges[2 * e]] - py[edges[2 * e + 1]]);
    bands[e] = lengths[e] < 0.06 * width ? 0 : lengths[e] < 0.25 * width ? 1 : 2;
    totals[bands[e]] += lengths[e];
  }
  const most = n > MANY_EDGES ? MAX_ALPHA / 2 : MAX_ALPHA;
  const alphas = totals.map((total, band) =>
    Math.min(most, Math.max(MIN_ALPHA, (INK[band] * width * height) / Math.max(total, 1))),
  );
  return { bands, alphas };
}

function paintGraph(view, graph, pen, dots, focus) {
  const { px, py } = view;
  const { x, y, k } = view.view;
  const thin = 1 / k;
  pen.setTransform(dots, 0, 0, dots, 0, 0);
  pen.clearRect(0, 0, view.width, view.height);
  pen.setTransform(dots * k, 0, 0, dots * k, dots * x, dots * y);
  paintEdges(view, graph, pen, thin, focus);
  const near = focus >= 0 ? paintFocus(view, graph, pen, focus, thin) : null;
  const size = Math.min(1, Math.max(0.35, 1 / Math.sqrt(k))); // nodes grow more slowly than distances
  const rim = view.n <= 600 ? colour("panel") : null;
  const codes = view.chosenCodes();
  for (let i = 0; i < view.n; i++) {
    const isFaint = near ? !near.has(i) : codes && codes[i] !== view.onlyClass;
    pen.globalAlpha = isFaint ? 0.2 : 1;
    pen.fillStyle = view.fills[i];
    pen.beginPath();
    pen.arc(px[i], py[i], view.radius[i] * size, 0, 2 * Math.PI);
    pen.fill();
    if (rim) {
      pen.strokeStyle = rim;
      pen.lineWidth = thin;
      pen.stroke();
    }
  }
  pen.globalAlpha = 1;
  if (near) paintNames(view, pen, dots, focus, near, size);
}

function paintEdges(view, graph, pen, thin, focus) {
  const { px, py } = view;
  const { edges, flags } = view.data.graphs[graph];
  const n = edges.length / 2;
  const codes = view.chosenCodes();
  const isNew = (e) => Boolean(flags) && !(+flags[e] & OBSERVED);
  const stride = view.moving ? Math.max(1, Math.ceil(n / MAX_EDGES_IN_MOTION)) : 1;
  const { bands, alphas } = (view.alphas[graph] ??= edgeAlphas(view, edges));
  const zoomed = Math.sqrt(view.view.k);
  pen.lineWidth = thin;
  for (const isCopied of flags ? [true, false] : [false]) {
    pen.strokeStyle = colour(isCopied ? "copied" : "edge");
    for (let band = 2; band >= 0; band--) {
      pen.globalAlpha = Math.min(MAX_ALPHA, zoomed * alphas[band]) * (focus >= 0 ? 0.3 : 1);
      let waiting = 0;
      for (let e = 0; e < n; e += stride) {
        if (bands[e] !== band || isNew(e) !== isCopied) continue;
        const [from, to] = [edges[2 * e], edges[2 * e + 1]];
        if (codes && codes[from] !== view.onlyClass && codes[to] !== view.onlyClass) continue;
        if (!waiting) pen.beginPath();
        pen.moveTo(px[from], py[from]);
        pen.lineTo(px[to], py[to]);
        if (++waiting === EDGES_PER_STROKE) {
          pen.stroke();
          waiting = 0;
        }
      }
      if (waiting) pen.stroke();
    }
  }
}

// The edges of one node: in the observed graph its own and those of its donor; in a sample by their origin.
function paintFocus(view, graph, pen, node, thin) {
  const near = new Set([node]);
  const { px, py } = view;
  const { graphs, directed } = view.data;
  const donor = view.donorOf(node);
  const line = (from, to, name, { dash = [], width = 2, hasArrow = true } = {}) => {
    Object.assign(pen, { strokeStyle: colour(name), fillStyle: colour(name), lineWidth: width * thin, globalAlpha: 1 });
    pen.setLineDash(dash.map((part) => part * thin));
    pen.beginPath();
    if (from === to) pen.arc(px[from], py[from] - 12 * thin, 12 * thin, 0, 2 * Math.PI);
    else {
      pen.moveTo(px[from], py[from]);
      pen.lineTo(px[to], py[to]);
    }
    pen.stroke();
    near.add(from).add(to);
    if (directed && hasArrow && from !== to) arrow(from, to);
  };
  const arrow = (from, to) => {
    const angle = Math.atan2(py[to] - py[from], px[to] - px[from]);
    const back = view.radius[to] + 2 * thin;
    const x = px[to] - back * Math.cos(angle);
    const y = py[to] - back * Math.sin(angle);
    pen.beginPath();
    for (const turn of [0, 2.7, -2.7])
      pen.lineTo(x + (turn && 9 * thin * Math.cos(angle + turn)), y + (turn && 9 * thin * Math.sin(angle + turn)));
    pen.fill();
  };
  const edgeLine = (which, number, ...style) =>
    line(graphs[which].edges[2 * number], graphs[which].edges[2 * number + 1], ...style);
  const copies = typeof donor === "number" && donor !== node;
  if (graph === 0) {
    if (copies) for (const [, edge] of view.rowOf(donor)) edgeLine(0, edge, "copied", { width: 1.5 });
    for (const [, edge] of view.edgesOf(0, node)) edgeLine(0, edge, "ink");
  } else {
    for (const [, edge] of view.edgesOf(graph, node))
      edgeLine(graph, edge, "copied", view.origin(graph, node, edge).copied ? {} : { dash: [6, 4] });
  }
  if (copies) line(node, donor, "copied", { dash: [1.5, 4], width: 1.5, hasArrow: false });
  pen.setLineDash([]);
  return near;
}

function paintNames(view, pen, dots, focus, near, size) {
  const donor = view.donorOf(focus);
  pen.setTransform(dots, 0, 0, dots, 0, 0);
  Object.assign(pen, { font: "600 12px system-ui, sans-serif", lineJoin: "round" });
  const named =
    near.size <= 40 && view.n <= 600 ? near : new Set([focus, ...(typeof donor === "number" ? [donor] : [])]);
  for (const node of named) {
    const [x, y] = view.view.apply([view.px[node], view.py[node]]);
    const away = view.radius[node] * size * view.view.k + 4;
    if (node === focus || node === donor) {
      Object.assign(pen, { strokeStyle: colour(node === focus ? "ink" : "copied"), lineWidth: 2 });
      pen.beginPath();
      pen.arc(x, y, away, 0, 2 * Math.PI);
      pen.stroke();
    }
    const text = view.data.ids[node].slice(0, 40);
    const isLeft = x + away + 3 + pen.measureText(text).width > view.width;
    const place = [isLeft ? x - away - 3 : x + away + 3, y + 4];
    Object.assign(pen, {
      textAlign: isLeft ? "right" : "left",
      strokeStyle: colour("panel"),
      fillStyle: colour("ink"),
      lineWidth: 3,
    });
    pen.strokeText(text, ...place);
    pen.fillText(text, ...place);
  }
}
