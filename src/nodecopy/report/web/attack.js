"use strict";
// A node before an attack, after it, and with copied neighbours.

const STAGE_SIZE = 300;
const MAX_NEIGHBOURS = 16;
const ORIGINS = {
  own: ["ink", "", "own edge"],
  added: ["error", "", "added by the attack"],
  removed: ["error", "dashed", "removed by the attack"],
  copied: ["copied", "", "copied from donors"],
};

function attackBody(section) {
  const truth = section.nodes[section.node].class;
  const used = new Set(section.nodes.map((node) => node.class).filter((code) => code >= 0));
  for (const stage of section.stages) used.add(d3.maxIndex(stage.probabilities));
  const stages = withRemoved(section.stages);
  const kinds = new Set(stages.flatMap((stage) => stage.neighbours.map(([, kind]) => kind)));
  const legend = make(
    "ul",
    { class: "legend" },
    ...Object.entries(ORIGINS)
      .filter(([kind]) => kinds.has(kind))
      .map(([, [name, style, text]]) => legendEntry(lineMark(name, style), text)),
    ...[...used]
      .sort(d3.ascending)
      .slice(0, 12)
      .map((code) =>
        legendEntry(
          dot(classColour(code, section.classes.length)),
          `class ${section.classes[code]}${code === truth ? " (true)" : ""}`,
        ),
      ),
  );
  const figures = stages.map((stage) => attackStage(section, stages, stage, truth));
  const csv = () => [
    ["stage", "class", "probability", "is_true"],
    ...stages.flatMap((stage) =>
      stage.probabilities.map((p, i) => [stage.name, section.classes[i], p, i === truth ? "yes" : "no"]),
    ),
  ];
  return make(
    "div",
    {},
    legend,
    make("div", { class: "columns" }, ...figures.map(([, , figure]) => figure)),
    note(`Donors of the copied neighbours: ${section.donors.join(", ")}.`),
    section.evidence ? evidenceBody(section, truth) : null,
    downloads(section.title, {
      rows: csv,
      pictures: () => [
        ...figures.map(([name, [svg]]) => [name, svg]),
        ...figures.map(([name, [, bars]]) => [`${name}: probabilities`, bars]),
      ],
    }),
  );
}

// What the features and edges of the attacked node say of its class, and which of its edges are distrusted.
function evidenceBody(section, truth) {
  const { parts, edge_evidence: evidence, edges } = section.evidence;
  const best = d3.maxIndex(parts.all);
  const distrusted = edges.filter((edge) => edge.distrusted).length;
  // The likeliest classes come first, since a phone shows only some columns.
  const order = d3.range(section.classes.length).sort((i, j) => parts.all[j] - parts.all[i]);
  const number = (text) => make("td", { class: "number" }, text);
  const line = (name, texts) => make("tr", {}, rowHead(name), ...order.map((i) => number(texts[i])));
  const rows = [
    ...Object.entries(parts)
      .filter(([name]) => name !== "all")
      .map(([name, values]) =>
        line(
          name,
          values.map((p) => percent(p)),
        ),
      ),
    line(
      "edges, in nats",
      evidence.map((value) => (value === null ? "–" : d3.format(".1f")(value))),
    ),
    line(
      "all evidence",
      parts.all.map((p) => percent(p)),
    ),
  ];
  const heads = [
    "",
    ...order.map((i) =>
      make("th", { scope: "col", class: "number" }, `${section.classes[i]}${i === truth ? " (true)" : ""}`),
    ),
  ];
  const edgeRows = edges.map((edge) =>
    make(
      "tr",
      {},
      rowHead(edge.neighbour),
      make("td", { class: edge.distrusted ? "wrong" : "" }, edge.distrusted ? "✗\u00a0distrusted" : "trusted"),
      make("td", {}, edge.added ? "yes" : "no"),
      make("td", {}, edge.class),
      numberCell(percent(edge.credibility)),
      make("td", { class: "sentence" }, edge.reason),
    ),
  );
  return make(
    "div",
    {},
    make("h3", {}, `All evidence: ${section.classes[best]} ${best === truth ? "✓" : "✗"}`),
    note(
      `The method of nodecopy defend, without copied neighbours: the class that features and credible edges favour together. ${distrusted} of ${plural(edges.length, "edge")} ${distrusted === 1 ? "is" : "are"} distrusted.`,
    ),
    table(heads, rows, { "aria-label": "evidence by class" }),
    edges.length
      ? table(
          [
            "neighbour",
            "verdict",
            "added by the attack",
            "its predicted class",
            make("th", { scope: "col", class: "number" }, "genuine"),
            "why",
          ],
          edgeRows,
          { "aria-label": "edges of the attacked node" },
        )
      : null,
  );
}

// Adds the neighbours that the attack took away to the stage after it.
function withRemoved([before, attacked, ...others]) {
  const rest = new Set(attacked.neighbours.map(([node]) => node));
  const lost = before.neighbours.filter(([node]) => !rest.has(node)).map(([node]) => [node, "removed"]);
  return [
    before,
    {
      ...attacked,
      neighbours: [
        ...attacked.neighbours.filter(([, kind]) => kind === "own"),
        ...lost,
        ...attacked.neighbours.filter(([, kind]) => kind !== "own"),
      ],
    },
    ...others,
  ];
}

// Returns the places of nodes on a part of the circle around the attacked node.
function ring(nodes, from, to) {
  const centre = STAGE_SIZE / 2;
  const reach = centre - 32;
  const angle = (i) => from + ((to - from) * (i + 0.5)) / nodes.length;
  return nodes.map((node, i) => [node, [centre + reach * Math.cos(angle(i)), centre + reach * Math.sin(angle(i))]]);
}

// Own neighbours are on the left, in all stages at the same place; others on the right, or all around if there are no own ones.
function stagePlaces(stages, shown) {
  const own = [
    ...new Set(stages.flatMap((stage) => stage.neighbours.filter(([, kind]) => kind === "own").map(([node]) => node))),
  ];
  const others = shown.filter(([, kind]) => kind === "added" || kind === "copied").map(([node]) => node);
  const quarter = Math.PI / 2;
  return new Map([
    ...ring(own, quarter, 3 * quarter),
    ...(others.length === shown.length ? ring(others, -quarter, 3 * quarter) : ring(others, -quarter, quarter)),
  ]);
}

function attackStage(section, stages, stage, truth) {
  const svg = drawing(STAGE_SIZE, STAGE_SIZE, `${stage.name}: ${stage.neighbours.length} neighbours`);
  const centre = STAGE_SIZE / 2;
  const shown = stage.neighbours.slice(0, MAX_NEIGHBOURS);
  const at = stagePlaces(stages, shown);
  svg
    .append("g")
    .selectAll("line")
    .data(shown)
    .join("line")
    .call(set, {
      x1: centre,
      y1: centre,
      x2: ([node]) => at.get(node)[0],
      y2: ([node]) => at.get(node)[1],
      stroke: ([, kind]) => `var(--${ORIGINS[kind][0]})`,
      "stroke-width": ([, kind]) => (kind === "own" ? 1.5 : 2.5),
      "stroke-dasharray": ([, kind]) => (kind === "removed" ? "3 5" : null),
    });
  for (const [node, kind] of shown) attackNode(svg, section, node, at.get(node), 15, kind === "removed" ? 0.35 : 1);
  attackNode(svg, section, section.node, [centre, centre], 22);
  if (stage.neighbours.length > shown.length)
    add(
      svg,
      "text",
      { x: centre, y: STAGE_SIZE - 2, "text-anchor": "middle" },
      `and ${stage.neighbours.length - shown.length} more`,
    );
  const best = d3.maxIndex(stage.probabilities);
  const isRight = best === truth;
  const bars = probabilityBars(section, stage, truth, best);
  const verdict = make(
    "p",
    { class: isRight ? "verdict" : "verdict wrong" },
    "predicted: ",
    dot(classColour(best, section.classes.length)),
    make("b", {}, section.classes[best]),
    ` ${isRight ? "✓" : "✗"} ${percent(stage.probabilities[best])}`,
  );
  return [
    stage.name,
    [svg.node(), bars],
    make(
      "figure",
      { class: "panel" },
      make("h3", {}, stage.name),
      make("p", { class: "quiet two-lines" }, describeNeighbours(section, stage)),
      svg.node(),
      verdict,
      bars,
    ),
  ];
}

function describeNeighbours(section, stage) {
  const parts = Object.entries(ORIGINS).map(([kind, [, , text]]) => {
    const nodes = stage.neighbours.filter(([, own]) => own === kind);
    const classes = new Set(nodes.map(([node]) => section.nodes[node].class));
    const same = classes.size === 1 && !classes.has(-1) ? `, all of class ${section.classes[[...classes][0]]}` : "";
    return nodes.length ? `${kind === "own" ? plural(nodes.length, text) : `${nodes.length} ${text}`}${same}` : null;
  });
  return `${parts.filter(Boolean).join("; ")}.`;
}

function attackNode(svg, section, node, [x, y], half, opacity = 1) {
  const { id, class: code, image } = section.nodes[node];
  const fill = classColour(code, section.classes.length);
  const group = add(svg, "g", { transform: `translate(${x},${y})`, opacity: opacity });
  group.append("title").text(`${id}: ${code < 0 ? "unlabelled" : section.classes[code]}`);
  if (image) {
    group
      .append("image")
      .call(set, { href: pixels(image), x: -half, y: -half, width: 2 * half, height: 2 * half })
      .style("image-rendering", "pixelated");
    add(group, "rect", {
      x: -half,
      y: -half,
      width: 2 * half,
      height: 2 * half,
      fill: "none",
      stroke: fill,
      "stroke-width": 2.5,
    });
    return;
  }
  add(group, "circle", { r: half * 0.7, fill: fill, stroke: "var(--panel)", "stroke-width": 2 });
  add(group, "text", { class: "halo", y: half * 0.7 + 12, "text-anchor": "middle" }, shorten(id, 12));
}

function pixels(rows) {
  const canvas = make("canvas", { width: rows[0].length, height: rows.length });
  const pen = canvas.getContext("2d");
  const data = pen.createImageData(rows[0].length, rows.length);
  rows.flat().forEach((value, i) => data.data.set([255 - value, 255 - value, 255 - value, 255], 4 * i));
  pen.putImageData(data, 0, 0);
  return canvas.toDataURL();
}

function probabilityBars(section, stage, truth, best) {
  const width = 300;
  const height = 124;
  const n = section.classes.length;
  const x = d3.scaleBand(d3.range(n), [0, width]).padding(0.25);
  const y = d3.scaleLinear([0, 1], [height - 32, 14]);
  const svg = drawing(
    width,
    height,
    stage.probabilities.map((p, i) => `${section.classes[i]} ${percent(p)}`).join(", "),
  );
  svg
    .append("g")
    .selectAll("rect")
    .data(stage.probabilities)
    .join("rect")
    .call(set, {
      x: (_, i) => x(i),
      width: x.bandwidth(),
      y: (p) => y(p),
      height: (p) => y(0) - y(p),
      rx: 2,
      fill: (_, i) => classColour(i, n),
    })
    .append("title")
    .text((p, i) => `${section.classes[i]}: ${percent(p, 1)}`);
  add(svg, "line", { x1: 0, x2: width, y1: y(0), y2: y(0), stroke: "var(--edge)" });
  const middle = (i) => x(i) + x.bandwidth() / 2;
  const room = Math.max(1, Math.floor(x.step() / 6.5));
  svg
    .append("g")
    .selectAll("text")
    .data(section.classes)
    .join("text")
    .call(set, {
      x: (_, i) => middle(i),
      y: height - 18,
      "text-anchor": "middle",
      class: (_, i) => (i === truth ? "strong" : null),
    })
    .text((name) => shorten(name, room));
  add(svg, "text", { x: middle(truth), y: height - 4, "text-anchor": "middle" }, "true");
  add(
    svg,
    "text",
    { x: middle(best), y: y(stage.probabilities[best]) - 4, "text-anchor": "middle" },
    percent(stage.probabilities[best]),
  );
  return svg.node();
}

BODIES.attack = attackBody;
