"use strict";
// The least credible and the most probable missing edges; the selected one is explained by its signals and donors.

function linksBody(section) {
  const all = Object.entries(section.lists).flatMap(([kind, links]) => links.map((link) => ({ kind, ...link })));
  const detail = make("div", { class: "explanation panel", "aria-live": "polite" });
  const nameOf = (link) => link.ends.join(" – ");
  const choose = (i) => {
    buttons.forEach((one, k) => one.setAttribute("aria-pressed", String(k === i)));
    detail.replaceChildren(...linkExplanation(all[i], section));
    remember("edge", i ? nameOf(all[i]) : null);
  };
  const buttons = all.map((link, i) =>
    make("button", { type: "button", title: "explain", onclick: () => choose(i) }, nameOf(link)),
  );
  const listOf = (kind) => {
    const rows = all.flatMap((link, i) =>
      link.kind === kind ? [make("tr", {}, rowHead(buttons[i]), numberCell(chance(link.probability)))] : [],
    );
    const title = kind === "doubtful" ? "Doubtful edges" : "Missing edges";
    return rows.length ? table([title, numberHead("probability")], rows, { "aria-label": title }) : note(`No ${title.toLowerCase()}.`);
  };
  const csv = () => [
    ["kind", "source", "target", "probability", "reasons", "donors"],
    ...all.map((link) => [
      ...[link.kind, ...link.ends, link.probability],
      link.reasons.map(([signal, , part]) => `${signal} ${formatDifference(part)}`).join("; "),
      link.donors.map(([end, donor, p]) => `${donor} like ${end} ${chance(p)}`).join("; "),
    ]),
  ];
  restoring("edge", (name) => {
    if (all.length) choose(Math.max(0, all.findIndex((link) => nameOf(link) === name)));
  });
  return make(
    "div",
    {},
    note("Select an edge to see why."),
    make("div", { class: "beside" }, make("div", {}, listOf("doubtful"), make("p"), listOf("missing")), detail),
    downloads("doubtful and missing edges", { rows: csv }),
  );
}

const chance = (p) => (p < 0.001 ? "< 0.1 %" : percent(p, p < 0.1 || p > 0.99 ? 1 : 0));

// What each signal adds to the log-odds, beside a bar to the left or to the right, and the donors that bring the edge.
function linkExplanation(link, section) {
  const largest = d3.max(link.reasons, ([, , part]) => Math.abs(part)) || 1;
  const rows = link.reasons.map(([signal, value, part]) => {
    const width = Math.round((50 * Math.abs(part)) / largest);
    const bar = make("i", { style: `width:${width}%;margin-left:${part < 0 ? 50 - width : 50}%` });
    const kind = part < 0 ? "against" : "copied";
    return make(
      "tr",
      {},
      rowHead(signal),
      numberCell(formatValue(value)),
      numberCell(formatDifference(part), make("span", { class: `meter ${kind}`, "aria-hidden": "true" }, bar)),
    );
  });
  const [first, second] = link.ends.map((id) => locator(section.graph, id));
  const donors = link.ends.flatMap((end, i) => {
    const own = link.donors.filter(([endpoint]) => endpoint === end);
    const list = own.map(([, donor, p]) => `${donor} (${chance(p)})`).join(", ");
    return own.length
      ? [make("p", {}, `Donors of ${end} that are linked to ${link.ends[1 - i]}, with their probabilities: `, list, ".")]
      : [];
  });
  const judged = link.kind === "doubtful" ? "This edge exists. If that were not known, it" : "This edge is absent. It";
  return [
    make("h3", {}, first, " – ", second),
    make(
      "p",
      {},
      `${judged} would have a probability of ${chance(link.probability)}; that of an average absent edge is ${chance(link.base_rate)}.`,
    ),
    table(["signal", numberHead("value"), numberHead("adds to the log-odds")], rows, { "aria-label": "reasons" }),
    ...(donors.length ? donors : [make("p", {}, "No donor of either end is linked to the other.")]),
  ];
}

BODIES.links = linksBody;
