"use strict";
// The charts of statistics, of calibration and of an attacked node.

const SERIES_COLOURS = ["copied", "new", "right", "own"];

function statisticsBody(section) {
  const dot = (name) => make("i", { style: `background:var(--${name})` });
  const legend = make("ul", { class: "legend" }, ...section.series.map((name, i) => legendEntry(dot(SERIES_COLOURS[i % 4]), name)),
    legendEntry(make("i", { class: "line", style: "border-color:var(--ink)" }), "observed"));
  return make("div", {}, legend, make("div", { class: "cards" }, ...section.rows.map((row) => statisticCard(row, section.series))));
}

function statisticCard(row, series) {
  const list = make("dl"), width = 300, lane = 24, height = lane * series.length + 20;
  const values = [row.observed, ...row.samples.flat()].filter((value) => value !== null);
  series.forEach((name, i) => {
    const defined = row.samples[i].filter((value) => value !== null);
    const text = defined.length < row.samples[i].length || !defined.length ? "–" : `${formatValue(d3.mean(defined))} ± ${formatValue(d3.deviation(defined) ?? null)}`;
    list.append(make("dt", {}, name), make("dd", {}, text));
    const [from, to, p] = row.intervals?.[i] ?? [null, null, null];
    if (p !== null) list.append(make("dt", {}, "95 %, p-value"), make("dd", {}, `${formatValue(from)} to ${formatValue(to)}, p = ${formatValue(p)}`));
  });
  let [low, high] = values.length ? d3.extent(values) : [0, 1];
  if (low === high) [low, high] = [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
  const x = d3.scaleLinear([low, high], [8, width - 8]);
  const svg = drawing(width, height, `${readableName(row.name)}: observed ${formatValue(row.observed)}; samples from ${formatValue(low)} to ${formatValue(high)}`);
  series.forEach((name, i) => {
    svg.append("g").attr("fill", `var(--${SERIES_COLOURS[i % 4]})`).selectAll("circle").data(row.samples[i].filter((value) => value !== null)).join("circle")
      .attr("cx", x).attr("cy", (_, k) => lane * i + 5 + 14 * ((k * 0.618) % 1)).attr("r", 2.6).attr("fill-opacity", 0.45);
  });
  if (row.observed !== null) {
    svg.append("line").attr("x1", x(row.observed)).attr("x2", x(row.observed)).attr("y1", 0).attr("y2", height - 18).attr("stroke", "var(--ink)").attr("stroke-width", 2);
  }
  svg.append("g").attr("transform", `translate(0,${height - 18})`).call(d3.axisBottom(x).ticks(4).tickSize(3));
  const outside = row.outside ?? [];
  return make("div", { class: outside.length ? "card outside" : "card" }, make("h3", {}, readableName(row.name), make("b", {}, formatValue(row.observed))), list, svg.node(),
    ...outside.map((sentence) => make("p", { class: "outside" }, sentence)));
}

// Returns a square chart with both axes in percent.
function percentChart(title, horizontal, vertical, low = 0) {
  const size = 340, left = 44, bottom = 40, svg = drawing(size, size - 20, title);
  const x = d3.scaleLinear([0, 1], [left, size - 10]), y = d3.scaleLinear([low, 1], [size - 20 - bottom, 22]);
  const format = (value) => `${Math.round(100 * value)}`;
  svg.append("text").attr("class", "strong").attr("x", 0).attr("y", 10).text(title);
  svg.append("g").attr("transform", `translate(0,${size - 20 - bottom})`).call(d3.axisBottom(x).ticks(5).tickFormat(format));
  svg.append("g").attr("transform", `translate(${left},0)`).call(d3.axisLeft(y).ticks(5).tickFormat(format));
  svg.append("text").attr("x", (size + left) / 2).attr("y", size - 24).attr("text-anchor", "middle").text(horizontal);
  svg.append("text").attr("transform", `translate(12,${(size - bottom) / 2}) rotate(-90)`).attr("text-anchor", "middle").text(vertical);
  return { svg, x, y };
}

function evaluationCharts(evaluations) {
  const lowest = d3.min(evaluations, (one) => d3.min(one.certainty, (point) => point[1])) ?? 0;
  const calibration = percentChart("Calibration", "confidence (%)", "accuracy (%)");
  const certainty = percentChart("Accuracy by certainty", "most certain nodes (%)", "accuracy among them (%)", Math.max(0, Math.floor(10 * lowest) / 10 - 0.05));
  calibration.svg.append("line").attr("x1", calibration.x(0)).attr("y1", calibration.y(0)).attr("x2", calibration.x(1)).attr("y2", calibration.y(1))
    .attr("stroke", "var(--edge)").attr("stroke-dasharray", "4 4");
  evaluations.forEach((one, i) => {
    const stroke = `var(--${SERIES_COLOURS[i % 4]})`;
    const path = ({ svg, x, y }, points) => svg.append("path").attr("fill", "none").attr("stroke", stroke).attr("stroke-width", 2).attr("d", d3.line((p) => x(p[0]), (p) => y(p[1]))(points));
    path(calibration, one.reliability);
    calibration.svg.append("g").attr("fill", stroke).selectAll("circle").data(one.reliability).join("circle").attr("cx", (p) => calibration.x(p[0])).attr("cy", (p) => calibration.y(p[1]))
      .attr("r", (p) => 2.5 + 6 * Math.sqrt(p[4] / one.n_nodes)).attr("fill-opacity", 0.8)
      .append("title").text((p) => `${one.name}: ${count(p[4])} nodes, confidence ${percent(p[0])}, accuracy ${percent(p[1])}`);
    path(certainty, one.certainty);
  });
  const heads = ["", "accuracy", "95 % interval", "calibration error", "negative log-likelihood", "nodes"];
  const rows = evaluations.map((one, i) => make("tr", {}, make("th", { scope: "row" }, make("i", { style: `display:inline-block;width:.7rem;height:.7rem;border-radius:50%;margin-right:.5rem;background:var(--${SERIES_COLOURS[i % 4]})` }), one.name),
    ...[percent(one.accuracy, 1), `${percent(one.interval[0], 1)} to ${percent(one.interval[1], 1)}`, percent(one.ece, 1), formatValue(one.nll), count(one.n_nodes)].map((text) => make("td", { class: "number" }, text))));
  return make("div", {}, make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((head, i) => make("th", { scope: "col", class: i ? "number" : null }, head)))), make("tbody", {}, ...rows))),
    !evaluations.some((one) => one.certainty.length) ? make("p", { class: "quiet" }, "No curves: they need at least 30 held-out nodes.") : make("div", { class: "columns" }, ...[calibration, certainty].map(({ svg }) => make("figure", { class: "panel" }, svg.node()))));
}

function attackBody(section) {
  const line = (name) => make("i", { class: "line", style: `border-color:var(--${name})` });
  const legend = make("ul", { class: "legend" }, legendEntry(line("own"), "edge of the clean graph"), legendEntry(line("new"), "added by the attack"), legendEntry(line("copied"), "copied from donors"),
    legendEntry(make("i", { style: "background:var(--right)" }), `true class: ${section.classes[section.nodes[section.node].class]}`));
  return make("div", {}, legend, make("div", { class: "columns" }, ...section.stages.map((stage) => attackStage(section, stage))),
    make("p", { class: "quiet" }, `Donors of the copied neighbours: ${section.donors.join(", ")}.`));
}

function attackStage(section, stage) {
  const size = 300, svg = drawing(size, size, `${stage.name}: ${stage.neighbours.length} neighbours`), maxNeighbours = 16;
  const around = stage.neighbours.slice(0, maxNeighbours), centre = size / 2, reach = size / 2 - 34;
  const places = around.map((_, i) => [centre + reach * Math.sin(2 * Math.PI * i / around.length), centre - reach * Math.cos(2 * Math.PI * i / around.length)]);
  svg.append("g").selectAll("line").data(around).join("line").attr("x1", centre).attr("y1", centre).attr("x2", (_, i) => places[i][0]).attr("y2", (_, i) => places[i][1])
    .attr("stroke", ([, kind]) => `var(--${kind === "added" ? "new" : kind})`).attr("stroke-width", 2);
  around.forEach(([node], i) => attackNode(svg, section, node, places[i], 15));
  attackNode(svg, section, section.node, [centre, centre], 22);
  if (stage.neighbours.length > maxNeighbours) svg.append("text").attr("x", centre).attr("y", size - 2).attr("text-anchor", "middle").text(`and ${stage.neighbours.length - maxNeighbours} more`);
  const best = d3.maxIndex(stage.probabilities), truth = section.nodes[section.node].class;
  return make("figure", { class: "panel" }, make("h3", { style: "margin-top:0" }, stage.name), svg.node(),
    make("p", { style: "margin:.4rem 0" }, "predicted class: ", make("b", {}, section.classes[best]), ` (${percent(stage.probabilities[best])})`), probabilityBars(section, stage, truth));
}

function attackNode(svg, section, node, [x, y], half) {
  const { id, class: code, image } = section.nodes[node], group = svg.append("g").attr("transform", `translate(${x},${y})`);
  group.append("title").text(`${id}: ${code < 0 ? "unlabelled" : section.classes[code]}`);
  if (image) {
    group.append("image").attr("href", picture(image)).attr("x", -half).attr("y", -half).attr("width", 2 * half).attr("height", 2 * half).style("image-rendering", "pixelated");
    group.append("rect").attr("x", -half).attr("y", -half).attr("width", 2 * half).attr("height", 2 * half).attr("fill", "none").attr("stroke", classColour(code, section.classes.length)).attr("stroke-width", 2);
    return;
  }
  group.append("circle").attr("r", half * 0.7).attr("fill", classColour(code, section.classes.length)).attr("stroke", "var(--panel)").attr("stroke-width", 2);
  group.append("text").attr("class", "halo").attr("y", half * 0.7 + 12).attr("text-anchor", "middle").text(id.length > 12 ? `${id.slice(0, 11)}…` : id);
}

function picture(rows) {
  const canvas = make("canvas", { width: rows[0].length, height: rows.length }), pen = canvas.getContext("2d"), pixels = pen.createImageData(rows[0].length, rows.length);
  rows.flat().forEach((value, i) => pixels.data.set([255 - value, 255 - value, 255 - value, 255], 4 * i));
  pen.putImageData(pixels, 0, 0);
  return canvas.toDataURL();
}

function probabilityBars(section, stage, truth) {
  const width = 300, height = 110, x = d3.scaleBand(d3.range(section.classes.length), [0, width]).padding(0.25), y = d3.scaleLinear([0, 1], [height - 20, 4]);
  const svg = drawing(width, height, stage.probabilities.map((p, i) => `${section.classes[i]} ${percent(p)}`).join(", "));
  svg.append("g").selectAll("rect").data(stage.probabilities).join("rect").attr("x", (_, i) => x(i)).attr("width", x.bandwidth()).attr("y", (p) => y(p)).attr("height", (p) => y(0) - y(p)).attr("rx", 2)
    .attr("fill", (_, i) => `var(--${i === truth ? "right" : "edge"})`).append("title").text((p, i) => `${section.classes[i]}: ${percent(p, 1)}`);
  svg.append("line").attr("x1", 0).attr("x2", width).attr("y1", y(0)).attr("y2", y(0)).attr("stroke", "var(--line)");
  const room = Math.max(1, Math.floor(x.step() / 6.5));
  svg.append("g").selectAll("text").data(section.classes).join("text").attr("x", (_, i) => x(i) + x.bandwidth() / 2).attr("y", height - 5).attr("text-anchor", "middle").text((name) => name.length > room ? `${name.slice(0, Math.max(1, room - 1))}…` : name);
  return svg.node();
}
