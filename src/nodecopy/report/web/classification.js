"use strict";
// Accuracy, calibration and uncertainty of classifiers on held-out nodes, and the predictions of nodes.

const ROWS_AT_ONCE = 12;
const DASHES = ["2 3", "7 4", "9 3 2 3"]; // of the lines of classifiers beside the main one

function classificationBody(section) {
  const parts = section.evaluations.length
    ? [evaluationParts(section), make("h3", {}, "Predictions, the most uncertain first")]
    : [];
  return make("div", {}, ...parts, nodeTable(section));
}

// The main classifier is the last one: its line is thick and has an interval.
function evaluationParts({ evaluations, min_curve_nodes: minNodes }) {
  const main = evaluations.length - 1;
  const styles = evaluations.map((_, i) =>
    i === main
      ? { stroke: "var(--ink)", width: 2.6, dash: null }
      : { stroke: "var(--quiet)", width: 1.6, dash: DASHES[i % 3] },
  );
  const sample = ({ stroke, width, dash }) =>
    drawing(36, 10, "")
      .attr("class", "sample")
      .call((svg) =>
        svg
          .append("line")
          .call(set, { x1: 0, x2: 36, y1: 5, y2: 5, stroke: stroke, "stroke-width": width, "stroke-dasharray": dash }),
      )
      .call(set, { role: null, "aria-label": null, "aria-hidden": "true" })
      .node();
  const rows = evaluations.map((one, i) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, one.certainty.length ? sample(styles[i]) : "", one.name),
      make(
        "td",
        { class: "number" },
        make("b", {}, percent(one.accuracy, 1)),
        make("small", {}, percentRange(one.interval, 1)),
      ),
      make(
        "td",
        { class: "number" },
        percent(one.majority, 1),
        one.has_learned ? null : make("small", { class: "wrong" }, "✗ did not learn"),
      ),
      make("td", { class: "number" }, percent(one.ece, 1)),
      make("td", { class: "number" }, formatValue(one.nll)),
      make(
        "td",
        { class: "number" },
        count(one.n_nodes),
        one.n_splits > 1 ? make("small", {}, `${one.n_splits} splits`) : null,
      ),
    ),
  );
  const heads = [
    "classifier",
    "accuracy, 95 % interval",
    "largest class",
    "calibration error",
    "negative log-likelihood",
    "nodes",
  ];
  const csv = () => [
    ["classifier", "accuracy", "low", "high", "largest_class", "has_learned", "ece", "nll", "nodes", "splits"],
    ...evaluations.map((one) => [
      one.name,
      one.accuracy,
      ...one.interval,
      one.majority,
      String(one.has_learned),
      one.ece,
      one.nll,
      one.n_nodes,
      one.n_splits,
    ]),
  ];
  const shown = table(
    heads.map((head, i) => make("th", { scope: "col", class: i ? "number" : null }, head)),
    rows,
    { "aria-label": "accuracy of classifiers" },
  );
  if (!evaluations.some((one) => one.certainty.length)) {
    const few = make(
      "p",
      { class: "quiet" },
      `No curves: ${plural(evaluations[main].n_nodes, "held-out node")} are too few; they need at least ${minNodes}.`,
    );
    return make("div", {}, shown, few, downloads("accuracy", { rows: csv }));
  }
  const charts = [calibrationChart(evaluations, styles), certaintyChart(evaluations, styles)];
  return make(
    "div",
    {},
    shown,
    make(
      "div",
      { class: "columns" },
      ...charts.map(([, svg, note]) =>
        make("figure", { class: "panel" }, svg, make("figcaption", { class: "quiet" }, note)),
      ),
    ),
    downloads("accuracy", { rows: csv, pictures: () => charts.map(([title, svg]) => [title, svg]) }),
  );
}

// Returns a square chart with both axes in percent.
function percentChart(title, horizontal, vertical, low = 0) {
  const size = 340;
  const left = 44;
  const bottom = 40;
  const svg = drawing(size, size - 20, title);
  const format = (value) => `${Math.round(100 * value)}`;
  const x = d3.scaleLinear([0, 1], [left, size - 10]);
  const y = d3.scaleLinear([low, 1], [size - 20 - bottom, 22]);
  svg.append("text").call(set, { class: "strong", x: 0, y: 10 }).text(title);
  svg
    .append("g")
    .attr("transform", `translate(0,${size - 20 - bottom})`)
    .call(d3.axisBottom(x).ticks(5).tickFormat(format));
  svg.append("g").attr("transform", `translate(${left},0)`).call(d3.axisLeft(y).ticks(5).tickFormat(format));
  svg
    .append("text")
    .call(set, { x: (size + left) / 2, y: size - 24, "text-anchor": "middle" })
    .text(horizontal);
  svg
    .append("text")
    .call(set, { transform: `translate(12,${(size - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" })
    .text(vertical);
  const line = (points, { stroke, width, dash }) =>
    svg.append("path").call(set, {
      fill: "none",
      stroke: stroke,
      "stroke-width": width,
      "stroke-dasharray": dash,
      d: pathOf(points.map((point) => [x(point[0]), y(point[1])])),
    });
  return { svg, x, y, line };
}

function calibrationChart(evaluations, styles) {
  const { svg, x, y, line } = percentChart("Calibration", "confidence (%)", "accuracy (%)");
  svg
    .append("line")
    .call(set, { x1: x(0), y1: y(0), x2: x(1), y2: y(1), stroke: "var(--edge)", "stroke-dasharray": "4 4" });
  evaluations.forEach((one, i) => {
    line(one.reliability, styles[i]);
    if (i < evaluations.length - 1) return;
    const points = svg.append("g").selectAll("g").data(one.reliability).join("g");
    points.append("line").call(set, {
      x1: (p) => x(p[0]),
      x2: (p) => x(p[0]),
      y1: (p) => y(p[2]),
      y2: (p) => y(p[3]),
      stroke: "var(--ink)",
    });
    points.append("circle").call(set, {
      cx: (p) => x(p[0]),
      cy: (p) => y(p[1]),
      r: (p) => 2.5 + 6 * Math.sqrt(p[4] / one.n_nodes),
      fill: "var(--ink)",
      "fill-opacity": 0.75,
    });
    points
      .append("title")
      .text(
        (p) =>
          `${one.name}: ${plural(p[4], "node")}, confidence ${percent(p[0])}, accuracy ${percent(p[1])} (${percentRange([p[2], p[3]])})`,
      );
  });
  const main = evaluations[evaluations.length - 1];
  return [
    "Calibration",
    svg.node(),
    `The larger a dot of ${main.name}, the more of its ${count(main.n_nodes)} nodes have this confidence; bars are intervals of 95 %. On the dashed line, confidence and accuracy are equal.`,
  ];
}

function certaintyChart(evaluations, styles) {
  const main = evaluations[evaluations.length - 1];
  const lowest = d3.min(
    evaluations.flatMap((one) => one.certainty),
    (point) => point[1],
  );
  const low = Math.max(0, Math.floor(10 * Math.min(lowest, main.certainty.at(-1)?.[2] ?? 1)) / 10 - 0.05);
  const { svg, x, y, line } = percentChart(
    "Accuracy by certainty",
    "most certain nodes (%)",
    "accuracy among them (%)",
    low,
  );
  const bound = (k) => main.certainty.map((point) => [x(point[0]), y(Math.max(point[k], low))]);
  svg
    .append("path")
    .call(set, { d: `${pathOf([...bound(2), ...bound(3).reverse()])}Z`, fill: "var(--ink)", "fill-opacity": 0.12 });
  evaluations.forEach((one, i) => line(one.certainty, styles[i]));
  return [
    "Accuracy by certainty",
    svg.node(),
    `The band is the interval of 95 % of ${main.name}. A line that falls to the right belongs to a classifier whose uncertainty points at its errors.`,
  ];
}

function nodeTable(section) {
  const name = (code) => (code < 0 ? "–" : section.classes[code]);
  const hasTruth = section.truth.some((code) => code >= 0);
  const isWrong = (i) => section.truth[i] >= 0 && section.truth[i] !== section.predicted[i];
  const columns = [
    { head: "node", value: (i) => section.ids[i] },
    { head: "predicted", value: (i) => name(section.predicted[i]) },
    ...(hasTruth ? [{ head: "truth", value: (i) => name(section.truth[i]) }] : []),
    ...["probability", "total", "aleatoric", "epistemic"].map((head) => ({
      head,
      value: (i) => section[head][i],
      number: true,
    })),
  ];
  const state = { by: columns.findIndex((one) => one.head === "total"), descending: true, filter: "", n: ROWS_AT_ONCE };
  const body = make("tbody");
  const more = make("button", {
    type: "button",
    onclick: () => {
      state.n += 50;
      fill();
    },
  });
  const status = make("span", { class: "quiet", "aria-live": "polite" });
  const heads = columns.map(({ head, number }, i) =>
    make(
      "th",
      { scope: "col", class: number ? "number" : null },
      make(
        "button",
        {
          type: "button",
          onclick: () => {
            state.descending = state.by === i ? !state.descending : Boolean(number);
            state.by = i;
            keep();
          },
        },
        head,
      ),
    ),
  );
  const cell = (i, { head, value, number }) => {
    if (head === "node") return make("th", { scope: "row" }, locator(section.graph, section.ids[i]));
    if (head === "probability") return make("td", { class: "number" }, percent(value(i)), meter(value(i)));
    if (number) return make("td", { class: "number" }, d3.format(".3f")(value(i)));
    const code = section[head][i];
    const wrong = head === "predicted" && isWrong(i);
    return make(
      "td",
      { class: wrong ? "wrong" : null },
      code < 0 ? "" : dot(classColour(code, section.classes.length)),
      value(i) + (wrong ? " ✗" : ""),
    );
  };
  const matches = () => {
    const { value, number } = columns[state.by];
    const order = state.descending ? d3.descending : d3.ascending;
    const sign = state.descending ? -1 : 1;
    const compare = number
      ? (a, b) => order(value(a), value(b))
      : (a, b) => sign * value(a).localeCompare(value(b), undefined, { numeric: true });
    return d3
      .range(section.ids.length)
      .filter((i) => !state.filter || section.ids[i].toLowerCase().includes(state.filter))
      .sort(compare);
  };
  function fill() {
    const chosen = matches();
    heads.forEach((head, i) =>
      i === state.by
        ? head.setAttribute("aria-sort", state.descending ? "descending" : "ascending")
        : head.removeAttribute("aria-sort"),
    );
    body.replaceChildren(
      ...chosen.slice(0, state.n).map((i) => make("tr", {}, ...columns.map((column) => cell(i, column)))),
    );
    more.hidden = chosen.length <= state.n;
    more.textContent = `Show ${Math.min(50, chosen.length - state.n)} more`;
    status.textContent =
      `${count(Math.min(state.n, chosen.length))} of ${plural(chosen.length, "node")}` +
      (section.n_nodes > section.ids.length
        ? `; the table holds the ${count(section.ids.length)} most uncertain of ${count(section.n_nodes)} nodes`
        : "");
  }
  const keep = () => {
    const isDefault = columns[state.by].head === "total" && state.descending;
    remember("sort", isDefault ? null : `${columns[state.by].head}${state.descending ? "-" : ""}`);
    remember("find", state.filter);
    fill();
  };
  const search = make("input", {
    type: "search",
    placeholder: "part of an id",
    oninput: (event) => {
      state.filter = event.target.value.toLowerCase();
      state.n = ROWS_AT_ONCE;
      keep();
    },
  });
  restoring("sort", (text) => {
    const by = columns.findIndex((one) => one.head === text.replace(/-$/, ""));
    if (by >= 0) Object.assign(state, { by, descending: text.endsWith("-") });
  });
  restoring("find", (text) => {
    state.filter = search.value = text;
    fill();
  });
  const csv = () => [columns.map((one) => one.head), ...matches().map((i) => columns.map((one) => one.value(i)))];
  const holder = make(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "predictions" },
    make("table", { class: "nodes" }, make("thead", {}, make("tr", {}, ...heads)), body),
  );
  return make(
    "div",
    {},
    make("div", { class: "tools" }, make("label", {}, "find", search), status),
    holder,
    make("div", { class: "tools" }, more, downloads("predictions", { rows: csv })),
    make(
      "p",
      { class: "quiet" },
      "Uncertainty is measured in nats. Total uncertainty (predictive entropy) = aleatoric uncertainty (mean entropy of the networks) + epistemic uncertainty (disagreement of the networks).",
    ),
  );
}

// Returns a node's id; where the node is drawn, a button that selects it in the graph.
function locator(graph, id) {
  const view = graphViews.get(graph);
  const node = view && view.number.get(id);
  if (node === undefined) return id;
  return make(
    "button",
    {
      type: "button",
      title: "select in the graph",
      onclick: () => {
        view.select(node, true);
        view.element.closest("section").scrollIntoView();
        view.panels[0].canvas.focus({ preventScroll: true });
      },
    },
    id,
  );
}

BODIES.classification = classificationBody;
