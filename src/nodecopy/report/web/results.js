"use strict";
// Results tables: a picture of ours against the published numbers, then the numbers.

const VERDICTS = {
  level: ["level", "●", "quiet"],
  ahead: ["ahead", "▲", "ink"],
  behind: ["behind", "▼", "error"],
  above: ["above", "▲", "highlight"],
  below: ["below", "▼", "highlight"],
};
const TRIANGLE_UP = "M0,-5L4.6,3.6L-4.6,3.6Z";
const TRIANGLE_DOWN = "M0,5L4.6,-3.6L-4.6,-3.6Z";
const CIRCLE = "M-3.4,0A3.4,3.4 0 1 0 3.4,0A3.4,3.4 0 1 0 -3.4,0";
const SHAPES = { ahead: TRIANGLE_UP, above: TRIANGLE_UP, behind: TRIANGLE_DOWN, below: TRIANGLE_DOWN };

function tablesBody(section) {
  const entries = section.experiments.map((experiment) => {
    const entry = make("details", {}, make("summary", {}, experiment.title));
    const fill = () => {
      if (entry.children.length === 1) entry.append(experimentBody(experiment));
    }; // once it is open
    entry.addEventListener("toggle", () => {
      if (entry.open) fill();
      const open = section.experiments
        .filter((_, k) => entries[k].open)
        .map((one) => one.name)
        .join(",");
      remember("tables", open === section.experiments[section.open].name ? null : open || "none");
    });
    entry.fill = fill;
    return entry;
  });
  restoring("tables", (text) =>
    entries.forEach((entry, i) => {
      const { name } = section.experiments[i];
      entry.open = text ? text.split(",").includes(name) : i === section.open;
      if (entry.open) entry.fill();
    }),
  );
  return make("div", {}, ...entries);
}

function experimentBody(experiment) {
  const cells = experiment.groups.flatMap((group) =>
    group.cells.flatMap((row, i) =>
      row.map((cell, j) => ({ cell, where: `${group.dataset}, ${group.methods[i]}, ${group.columns[j]}` })),
    ),
  );
  const compared = cells.filter(({ cell }) => cell && cell[0] != null && cell[2] != null);
  const picture = compared.length ? comparisonPicture(compared, experiment.title) : null;
  const origin = Object.entries(experiment.origin)
    .filter(([, values]) => values.length)
    .map(([key, values]) => `${key} ${values.join("; ")}`)
    .join(" · ");
  const source = make("details", { class: "plain" }, make("summary", {}, "Where the numbers come from"), note(origin));
  return make(
    "div",
    {},
    picture
      ? make("figure", { class: "panel comparison" }, picture, make("figcaption", {}, ...verdictLegend(compared)))
      : null,
    ...experiment.groups.flatMap((group) => [make("h3", {}, group.dataset), resultTable(group)]),
    source,
    downloads(experiment.title, {
      rows: () => resultRows(experiment),
      pictures: picture ? () => [[`${experiment.title}: ours against published`, picture]] : undefined,
    }),
  );
}

function resultRows(experiment) {
  const heads = ["experiment", "dataset", "method", "column", "mean", "std", "published", "published_std", "verdict"];
  return [
    heads,
    ...experiment.groups.flatMap((group) =>
      group.cells.flatMap((row, i) =>
        row.flatMap((cell, j) =>
          cell?.length
            ? [
                [
                  experiment.name,
                  group.dataset,
                  group.methods[i],
                  group.columns[j],
                  ...d3.range(5).map((k) => cell[k] ?? null),
                ],
              ]
            : [],
        ),
      ),
    ),
  ];
}

function verdictLegend(compared) {
  const groups = Object.entries(VERDICTS)
    .map(([key, value]) => [value, compared.filter(({ cell }) => cell[4] === key).length])
    .filter(([, n]) => n);
  const items = groups.map(([[name, sign, hue], n]) =>
    legendEntry(make("i", { class: "sign", style: `color:var(--${hue})` }, sign), `${name}: ${n}`),
  );
  return [
    make("ul", { class: "legend" }, ...items),
    note(
      "One mark is one cell of the tables below; on the line, ours and the published number are equal. Level: within two standard errors.",
    ),
  ];
}

function comparisonPicture(compared, title) {
  const size = 420;
  const left = 56;
  const bottom = 44;
  const values = compared.flatMap(({ cell }) => [cell[0], cell[2]]);
  const positive = values.filter((value) => value > 0);
  const isWide = d3.max(values) / d3.min(positive) > 60 || d3.min(values) < 0; // statistics of different sizes
  const margin = (d3.max(values) - d3.min(values)) * 0.04 || 1;
  const domain = isWide ? d3.extent(values) : [d3.min(values) - margin, d3.max(values) + margin];
  const unit = isWide ? d3.scaleSymlog(domain, [0, 1]).constant(0.01) : d3.scaleLinear(domain, [0, 1]);
  const x = (value) => left + (size - left - 12) * unit(value);
  const y = (value) => size - bottom - (size - bottom - 12) * unit(value);
  const svg = drawing(size, size, `${title}: ours against the published numbers, ${compared.length} cells`);
  const ticks = isWide
    ? [0, 0.1, 1, 10, 100, 1000, 10000].filter((value) => value >= domain[0] && value <= domain[1])
    : unit.ticks(6);
  for (const tick of ticks) {
    add(svg, "line", { class: "grid", x1: x(tick), x2: x(tick), y1: 12, y2: size - bottom });
    add(svg, "line", { class: "grid", x1: left, x2: size - 12, y1: y(tick), y2: y(tick) });
    add(svg, "text", { x: x(tick), y: size - bottom + 15, "text-anchor": "middle" }, formatValue(tick));
    add(svg, "text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, formatValue(tick));
  }
  add(svg, "line", { x1: x(domain[0]), y1: y(domain[0]), x2: x(domain[1]), y2: y(domain[1]), stroke: "var(--edge)" });
  add(svg, "text", { x: (size + left) / 2, y: size - 8, "text-anchor": "middle" }, "published");
  add(svg, "text", { transform: `translate(12,${(size - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, "ours");
  const order = ["level", "above", "below", "ahead", "behind"];
  const sorted = [...compared].sort((a, b) => order.indexOf(a.cell[4]) - order.indexOf(b.cell[4]));
  svg
    .append("g")
    .selectAll("path")
    .data(sorted)
    .join("path")
    .call(set, {
      class: "cell",
      transform: ({ cell }) => `translate(${x(cell[2])},${y(cell[0])})`,
      d: ({ cell }) => SHAPES[cell[4]] ?? CIRCLE,
      fill: ({ cell }) => `var(--${VERDICTS[cell[4]]?.[2] ?? "quiet"})`,
      "fill-opacity": 0.75,
    })
    .append("title")
    .text(({ cell, where }) => `${where}: ours ${formatValue(cell[0])}, published ${formatValue(cell[2])}`);
  return svg.node();
}

function resultTable(group) {
  const largest = d3.max(group.cells.flat(), (cell) => cell?.[0] ?? 0);
  const fixed = largest < 2 ? d3.format(".3f") : d3.format(",.1f");
  const spread = (mean, std) => `${fixed(mean)}${std == null ? "" : ` ± ${fixed(std)}`}`;
  const shown = (cell) => {
    const [mean, std, published, publishedStd, verdict, best] = cell ?? [];
    if (mean == null && published == null) return make("td", {}, "–");
    const ours = mean == null ? "not run" : spread(mean, std);
    const [name, sign] = VERDICTS[verdict] ?? [];
    const judged = name
      ? [" ", make("span", { class: verdict }, `${sign} ${name} ${formatDifference(mean - published)}`)]
      : [];
    return make(
      "td",
      {},
      best ? make("b", {}, ours) : ours,
      published == null ? null : make("small", {}, `published ${spread(published, publishedStd)}`, ...judged),
    );
  };
  return table(
    ["method", ...group.columns],
    group.methods.map((method, i) => make("tr", {}, rowHead(method), ...group.cells[i].map(shown))),
    { class: "results", "aria-label": group.dataset },
  );
}

BODIES.tables = tablesBody;
