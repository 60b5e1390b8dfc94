"use strict";
// Statistics of the observed graph and of samples: those outside of the samples' range first, the others folded.

const CARD_WIDTH = 340;
const LANE = 42;

function statisticsBody(section) {
  const cards = section.rows.map((row) => [row, statisticCard(row, section.series)]);
  const outside = cards.filter(([row]) => row.outside.length);
  const inside = cards.filter(([row]) => !row.outside.length);
  const grid = (entries) => make("div", { class: "cards" }, ...entries.map(([, card]) => card));
  const legend = make(
    "ul",
    { class: "legend" },
    legendEntry(dot("var(--quiet)"), "sample"),
    legendEntry(make("i", { class: "line thin", style: "border-color:var(--quiet)" }), "95 % of the samples"),
    legendEntry(make("i", { class: "mark" }), "observed"),
    section.rows.some((row) => row.estimate)
      ? legendEntry(
          make("i", { class: "line thin", style: "border-color:var(--ink)" }),
          "interval of the observed value",
        )
      : null,
    outside.length ? legendEntry(make("i", { class: "mark highlight" }), "observed, outside of all samples") : null,
  );
  const folded = make(
    "details",
    {},
    make(
      "summary",
      {},
      `${plural(inside.filter(([row]) => row.observed !== null).length, "statistic")} within the range of the samples`,
    ),
    grid(inside),
  );
  folded.addEventListener("toggle", () =>
    remember("statistics", folded.open === !outside.length ? null : folded.open ? "open" : "closed"),
  );
  restoring("statistics", (text) => {
    folded.open = text ? text === "open" : !outside.length;
  });
  return make(
    "div",
    {},
    legend,
    section.estimates ? note(section.estimates) : null,
    outside.length ? grid(outside) : null,
    inside.length ? folded : null,
    downloads("statistics", {
      rows: () => statisticRows(section),
      pictures: () => cards.map(([row, card]) => [readableName(row.name), card.querySelector("svg")]),
    }),
  );
}

function statisticRows(section) {
  const heads = [
    "statistic",
    "observed",
    "series",
    "mean",
    "deviation",
    "low",
    "high",
    "p-value",
    "outside",
    "observed_low",
    "observed_high",
  ];
  return [
    heads,
    ...section.rows.flatMap((row) =>
      section.series.map((name, i) => {
        const values = row.samples[i].filter((value) => value !== null);
        const [low, high, p] = row.intervals[i];
        return [
          row.name,
          row.observed,
          name,
          d3.mean(values),
          d3.deviation(values),
          low,
          high,
          p,
          isOutside(row, i) ? "yes" : "no",
          ...(row.estimate ?? [null, null]),
        ];
      }),
    ),
  ];
}

function isOutside(row, i) {
  const values = row.samples[i];
  return (
    row.observed !== null &&
    values.length > 0 &&
    !values.includes(null) &&
    (row.observed < d3.min(values) || row.observed > d3.max(values))
  );
}

function statisticCard(row, series) {
  return make(
    "div",
    { class: row.outside.length ? "card outside" : "card" },
    make(
      "h3",
      {},
      readableName(row.name),
      make(
        "b",
        {},
        formatValue(row.observed),
        row.estimate ? make("small", {}, ` (${row.estimate.map(formatValue).join(" to ")})`) : null,
      ),
    ),
    ...row.outside.map((sentence) => make("p", { class: "outside" }, sentence.replace(`${row.name} is `, ""))),
    statisticPicture(row, series),
  );
}

// Returns the mean with the deviation, and the range of 95 % with the p-value.
function describeSeries(row, i) {
  const values = row.samples[i];
  const [low, high, p] = row.intervals[i];
  if (!values.length || values.includes(null)) return ["undefined", ""];
  const short = (value) =>
    Math.abs(value) < 0.01 && Math.abs(value) >= 1e-4 ? d3.format(".2~g")(value) : formatValue(value);
  return [
    `${short(d3.mean(values))} ± ${short(d3.deviation(values) ?? null)}`,
    low === null ? "" : `${short(low)} to ${short(high)}${p === null ? "" : `, p = ${d3.format(".2~g")(p)}`}`,
  ];
}

function statisticPicture(row, series) {
  const height = LANE * series.length + 22;
  const values = [row.observed, ...(row.estimate ?? []), ...row.samples.flat()].filter((value) => value !== null);
  let [low, high] = values.length ? d3.extent(values) : [0, 1];
  if (low === high) [low, high] = [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
  const x = d3.scaleLinear([low, high], [8, CARD_WIDTH - 8]);
  const svg = drawing(
    CARD_WIDTH,
    height,
    `${readableName(row.name)}: observed ${formatValue(row.observed)}; ${series.map((name, i) => `${name}: ${describeSeries(row, i).join("; 95 %: ")}`).join("; ")}`,
  );
  series.forEach((name, i) => {
    const top = LANE * i;
    const group = svg.append("g");
    const [from, to] = row.intervals[i];
    const marked = isOutside(row, i);
    const [mean, range] = describeSeries(row, i);
    const text = group.append("text").attr("y", top + 10);
    if (series.length > 1)
      text
        .append("tspan")
        .attr("class", "strong")
        .text(`${shorten(name, 13)} `);
    text.append("tspan").text(mean);
    add(group, "text", { x: CARD_WIDTH, y: top + 10, "text-anchor": "end" }, range);
    group
      .append("g")
      .attr("fill", "var(--quiet)")
      .selectAll("circle")
      .data(row.samples[i].filter((value) => value !== null))
      .join("circle")
      .call(set, { cx: x, cy: (_, k) => top + 18 + 12 * ((k * 0.618) % 1), r: 2.4, "fill-opacity": 0.5 });
    if (from !== null)
      add(group, "line", {
        x1: x(from),
        x2: x(to),
        y1: top + 36,
        y2: top + 36,
        stroke: "var(--quiet)",
        "stroke-width": 2,
      });
    if (row.observed === null) return;
    if (row.estimate)
      add(group, "line", {
        x1: x(row.estimate[0]),
        x2: x(row.estimate[1]),
        y1: top + 16,
        y2: top + 16,
        stroke: "var(--ink)",
        "stroke-width": 1.5,
      });
    const mark = add(group, "line", { x1: x(row.observed), x2: x(row.observed), y1: top + 15, y2: top + 38 });
    mark.call(set, { stroke: `var(--${marked ? "highlight" : "ink"})`, "stroke-width": marked ? 4 : 2 });
  });
  svg
    .append("g")
    .attr("transform", `translate(0,${height - 20})`)
    .call(d3.axisBottom(x).ticks(4).tickSize(3).tickFormat(formatValue));
  return svg.node();
}

BODIES.statistics = statisticsBody;
