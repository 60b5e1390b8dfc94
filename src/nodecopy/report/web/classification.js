"use strict";
// Accuracy, calibration and uncertainty of classifiers on held-out nodes, and the predictions of nodes.

const ROWS_AT_ONCE = 12;
const ROWS_MORE = 50;
const DASHES = ["2 3", "7 4", "9 3 2 3"]; // of the lines of classifiers beside the main one

function classificationBody(section) {
  const order = section.rare === null ? "the most uncertain first" : `by the ${rareHead(section)}`;
  const parts = section.evaluations.length
    ? [evaluationParts(section), classTable(section), make("h3", {}, `Predictions, ${order}`)]
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
  const rows = () => evaluationRows(evaluations);
  if (!evaluations.some((one) => one.certainty.length)) {
    const n = plural(evaluations[main].n_nodes, "held-out node");
    const few = note(`No curves: ${n} are too few; they need at least ${minNodes}.`);
    return make("div", {}, evaluationTable(evaluations, styles), few, downloads("accuracy", { rows }));
  }
  const charts = [calibrationChart(evaluations, styles), certaintyChart(evaluations, styles)];
  const figures = charts.map(([, svg, text]) =>
    make("figure", { class: "panel" }, svg, make("figcaption", { class: "quiet" }, text)),
  );
  return make(
    "div",
    {},
    evaluationTable(evaluations, styles),
    make("div", { class: "columns" }, ...figures),
    downloads("accuracy", { rows, pictures: () => charts.map(([title, svg]) => [title, svg]) }),
  );
}

function evaluationTable(evaluations, styles) {
  const small = (text, wrong = false) => make("small", { class: wrong ? "wrong" : null }, text);
  const rows = evaluations.map((one, i) =>
    make(
      "tr",
      {},
      rowHead(one.certainty.length ? lineSample(styles[i]) : "", one.name),
      numberCell(make("b", {}, percent(one.accuracy, 1)), small(percentRange(one.interval, 1))),
      numberCell(percent(one.majority, 1), one.has_learned ? null : small("✗ did not learn", true)),
      numberCell(percent(one.ece, 1)),
      numberCell(formatValue(one.nll)),
      numberCell(count(one.n_nodes), one.n_splits > 1 ? small(`${one.n_splits} splits`) : null),
    ),
  );
  const numbers = ["accuracy, 95 % interval", "largest class", "calibration error", "negative log-likelihood", "nodes"];
  const heads = ["classifier", ...numbers.map((text) => numberHead(text))];
  return table(heads, rows, { "aria-label": "accuracy of classifiers" });
}

// Returns the precision and recall of every class, of the main classifier.
function classTable({ by_class: byClass, evaluations, classes }) {
  const rows = Object.entries(byClass).map(([name, { precision, recall, f1, nodes }]) =>
    make(
      "tr",
      {},
      rowHead(dot(classColour(classes.indexOf(name), classes.length)), name),
      ...[precision, recall, f1].map((value) => numberCell(percent(value), meter(value))),
      numberCell(count(nodes)),
    ),
  );
  const heads = ["class", ...["precision", "recall", "F1", "nodes"].map((text) => numberHead(text))];
  const title = `Classes, by ${evaluations.at(-1).name}`;
  return make("div", {}, make("h3", {}, title), table(heads, rows, { "aria-label": title }));
}

// Returns a short line as it is drawn in the charts.
function lineSample({ stroke, width, dash }) {
  const svg = drawing(36, 10, "").call(set, { class: "sample", role: null, "aria-label": null, "aria-hidden": "true" });
  add(svg, "line", { x1: 0, x2: 36, y1: 5, y2: 5, stroke, "stroke-width": width, "stroke-dasharray": dash });
  return svg.node();
}

function evaluationRows(evaluations) {
  const keys = ["accuracy", "low", "high", "largest_class", "has_learned", "ece", "nll", "nodes", "splits"];
  const rows = evaluations.map(({ name, accuracy, interval, majority, has_learned: learned, ece, nll, ...sizes }) => [
    ...[name, accuracy, ...interval, majority, String(learned), ece, nll, sizes.n_nodes, sizes.n_splits],
  ]);
  return [["classifier", ...keys], ...rows];
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
  add(svg, "text", { class: "strong", x: 0, y: 10 }, title);
  svg
    .append("g")
    .attr("transform", `translate(0,${size - 20 - bottom})`)
    .call(d3.axisBottom(x).ticks(5).tickFormat(format));
  svg.append("g").attr("transform", `translate(${left},0)`).call(d3.axisLeft(y).ticks(5).tickFormat(format));
  add(svg, "text", { x: (size + left) / 2, y: size - 24, "text-anchor": "middle" }, horizontal);
  add(
    svg,
    "text",
    { transform: `translate(12,${(size - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" },
    vertical,
  );
  const line = (points, { stroke, width, dash }) =>
    add(svg, "path", {
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
  add(svg, "line", { x1: x(0), y1: y(0), x2: x(1), y2: y(1), stroke: "var(--edge)", "stroke-dasharray": "4 4" });
  evaluations.forEach((one, i) => {
    line(one.reliability, styles[i]);
    if (i < evaluations.length - 1) return;
    const points = svg.append("g").selectAll("g").data(one.reliability).join("g");
    add(points, "line", {
      x1: (p) => x(p[0]),
      x2: (p) => x(p[0]),
      y1: (p) => y(p[2]),
      y2: (p) => y(p[3]),
      stroke: "var(--ink)",
    });
    add(points, "circle", {
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
  add(svg, "path", { d: `${pathOf([...bound(2), ...bound(3).reverse()])}Z`, fill: "var(--ink)", "fill-opacity": 0.12 });
  evaluations.forEach((one, i) => line(one.certainty, styles[i]));
  return [
    "Accuracy by certainty",
    svg.node(),
    `The band is the interval of 95 % of ${main.name}. A line that falls to the right belongs to a classifier whose uncertainty points at its errors.`,
  ];
}

const rareHead = (section) => `probability of ${section.classes[section.rare]}`;

// Returns the columns of the table of predictions: their heads, and their values by the number of a row.
function nodeColumns(section) {
  const name = (code) => (code < 0 ? "–" : section.classes[code]);
  const classes = section.truth.some((code) => code >= 0) ? ["predicted", "truth"] : ["predicted"];
  const numbers = ["total", "aleatoric", "epistemic"];
  const percents = section.rare === null ? [] : [[rareHead(section), section.rare_probability]];
  percents.push(["probability", section.probability]);
  return [
    { head: "node", value: (i) => section.ids[i] },
    ...classes.map((head) => ({ head, value: (i) => name(section[head][i]) })),
    ...percents.map(([head, values]) => ({ head, value: (i) => values[i], number: true, isPercent: true })),
    ...numbers.map((head) => ({ head, value: (i) => section[head][i], number: true })),
  ];
}

function nodeCell(section, { head, value, number, isPercent }, i) {
  if (head === "node") return rowHead(locator(section.graph, section.ids[i]));
  if (isPercent) return numberCell(percent(value(i)), meter(value(i)));
  if (number) return numberCell(d3.format(".3f")(value(i)));
  const code = section[head][i];
  const isWrong = head === "predicted" && section.truth[i] >= 0 && section.truth[i] !== code;
  const mark = code < 0 ? "" : dot(classColour(code, section.classes.length));
  return make("td", { class: isWrong ? "wrong" : null }, mark, value(i) + (isWrong ? " ✗" : ""));
}

// Returns the numbers of the rows whose ids contain a text, sorted by a column.
function findNodes(section, { value, number }, { descending, filter }) {
  const order = descending ? d3.descending : d3.ascending;
  const sign = descending ? -1 : 1;
  const compare = number
    ? (a, b) => order(value(a), value(b))
    : (a, b) => sign * value(a).localeCompare(value(b), undefined, { numeric: true });
  const rows = d3.range(section.ids.length);
  return rows.filter((i) => !filter || section.ids[i].toLowerCase().includes(filter)).sort(compare);
}

function nodeTable(section) {
  const columns = nodeColumns(section);
  const first = section.rare === null ? "total" : rareHead(section);
  const state = { by: columns.findIndex((one) => one.head === first), descending: true, filter: "", n: ROWS_AT_ONCE };
  const found = () => findNodes(section, columns[state.by], state);
  const heads = columns.map(({ head, number }, i) =>
    make(
      "th",
      { scope: "col", class: number ? "number" : null },
      make("button", { type: "button", onclick: () => sortBy(i) }, head),
    ),
  );
  const body = make("tbody");
  const status = make("span", { class: "quiet", "aria-live": "polite" });
  const more = make("button", { type: "button", onclick: () => show({ n: state.n + ROWS_MORE }) });
  const search = make("input", {
    type: "search",
    placeholder: "part of an id",
    oninput: (event) => show({ filter: event.target.value.toLowerCase(), n: ROWS_AT_ONCE }),
  });
  const sortBy = (i) => show({ by: i, descending: state.by === i ? !state.descending : Boolean(columns[i].number) });

  function show(changes) {
    Object.assign(state, changes);
    const { head } = columns[state.by];
    remember("sort", head === first && state.descending ? null : `${head}${state.descending ? "-" : ""}`);
    remember("find", state.filter);
    fill();
  }

  function fill() {
    const rows = found();
    const order = state.descending ? "descending" : "ascending";
    heads.forEach((head, i) =>
      i === state.by ? head.setAttribute("aria-sort", order) : head.removeAttribute("aria-sort"),
    );
    const shown = rows.slice(0, state.n);
    body.replaceChildren(...shown.map((i) => make("tr", {}, ...columns.map((column) => nodeCell(section, column, i)))));
    more.hidden = rows.length <= state.n;
    more.textContent = `Show ${Math.min(ROWS_MORE, rows.length - state.n)} more`;
    const part = `; the table holds the ${count(section.ids.length)} first of ${count(section.n_nodes)} nodes`;
    status.textContent = `${count(shown.length)} of ${plural(rows.length, "node")}${section.n_nodes > section.ids.length ? part : ""}`;
  }

  restoring("sort", (text) => {
    const by = columns.findIndex((one) => one.head === text.replace(/-$/, ""));
    if (by >= 0) Object.assign(state, { by, descending: text.endsWith("-") });
  });
  restoring("find", (text) => {
    state.filter = search.value = text;
    fill();
  });
  const csv = () => [columns.map((one) => one.head), ...found().map((i) => columns.map((one) => one.value(i)))];
  return make(
    "div",
    {},
    make("div", { class: "tools" }, make("label", {}, "find", search), status),
    make(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "predictions" },
      make("table", { class: "nodes" }, make("thead", {}, make("tr", {}, ...heads)), body),
    ),
    make("div", { class: "tools" }, more, downloads("predictions", { rows: csv })),
    note(
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
