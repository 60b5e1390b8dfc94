"use strict";
// The recommended items of a user, with the items of the history and the donors that explain them.

const FLOW_ROW = 26;
const MAX_FLOW_ROWS = 14;

function recommendationsBody(section) {
  const place = make("div");
  const number =
    section.users.length < section.n_users
      ? `${count(section.users.length)} of ${plural(section.n_users, "user")}`
      : "";
  const select = make(
    "select",
    {
      onchange: (event) => {
        remember("item", null);
        remember("user", section.users[event.target.value].id);
        show(+event.target.value);
      },
    },
    ...section.users.map((user, i) => make("option", { value: i }, user.id)),
  );
  const show = (i) => {
    select.value = i;
    place.replaceChildren(recommendationsOf(section.users[i], section));
  };
  restoring("user", (id) => {
    if (section.users.length) show(indexOrFirst(section.users, (user) => user.id === id));
  });
  return make(
    "div",
    {},
    section.evaluations.length ? recommenderTable(section.evaluations) : null,
    make("div", { class: "tools" }, make("label", {}, "user", select), make("span", { class: "quiet" }, number)),
    place,
  );
}

function recommenderTable(evaluations) {
  const heads = [
    "recommender",
    `recall@${evaluations[0].k}, 95 % interval`,
    `NDCG@${evaluations[0].k}, 95 % interval`,
    "users",
  ];
  const value = (mean, interval) =>
    numberCell(make("b", {}, percent(mean, 1)), make("small", {}, percentRange(interval, 1)));
  const rows = evaluations.map((one) =>
    make(
      "tr",
      {},
      rowHead(one.name),
      value(one.recall, one.interval),
      value(one.ndcg, one.ndcg_interval),
      numberCell(count(one.n_users), one.n_splits > 1 ? make("small", {}, `${one.n_splits} splits`) : null),
    ),
  );
  const csv = () => [
    ["recommender", "recall", "recall_low", "recall_high", "ndcg", "ndcg_low", "ndcg_high", "users", "splits"],
    ...evaluations.map((one) => [
      one.name,
      one.recall,
      ...one.interval,
      one.ndcg,
      ...one.ndcg_interval,
      one.n_users,
      one.n_splits,
    ]),
  ];
  return make(
    "div",
    {},
    table(
      heads.map((head, i) => (i ? numberHead(head) : head)),
      rows,
      { "aria-label": "recall and NDCG of recommenders" },
    ),
    downloads("recommenders", { rows: csv }),
  );
}

const indexOrFirst = (list, matches) => Math.max(0, list.findIndex(matches));
const pairsOf = (flat) => d3.range(flat.length / 2).map((i) => [flat[2 * i], flat[2 * i + 1] / 1000]);

function recommendationsOf(user, section) {
  const items = user.items.map(([item, score, because = null, donors = null]) => ({
    name: section.item_names[item],
    item,
    score,
    because: because && pairsOf(because),
    donors: donors && pairsOf(donors),
  }));
  const isExplained = items.some((one) => one.because);
  const picture = isExplained ? flowPicture(user, items, section) : null;
  const detail = make("div", { class: "explanation panel", "aria-live": "polite" });
  const buttons = items.map((one, i) =>
    make("button", { type: "button", title: "explain", onclick: () => choose(i) }, one.name),
  );
  const choose = (i) => {
    buttons.forEach((one, k) => one.setAttribute("aria-pressed", String(k === i)));
    picture.mark(i);
    detail.replaceChildren(...explanation(user, items[i], section));
    remember("item", i ? items[i].name : null);
  };
  if (isExplained) restoring("item", (name) => choose(indexOrFirst(items, (one) => one.name === name)));
  const list = itemTable(items, isExplained ? buttons : items.map((one) => one.name));
  const rest = user.n_items - user.history.length;
  return make(
    "div",
    {},
    make("h3", {}, `History of ${user.id}: ${plural(user.n_items, "item")}`),
    make(
      "ul",
      { class: "chips" },
      ...user.history.map((item) => make("li", {}, section.item_names[item])),
      rest > 0 ? make("li", {}, `and ${count(rest)} more`) : null,
    ),
    make("h3", {}, isExplained ? "Recommended items: select one to see why" : "Recommended items"),
    make(
      "div",
      { class: picture ? "beside" : null },
      list,
      picture ? make("div", {}, make("figure", { class: "panel" }, picture.svg), detail) : null,
    ),
    downloads(`recommendations for ${user.id}`, {
      rows: () => recommendationRows(user, items, section),
      pictures: picture ? () => [[`Recommendations for ${user.id}`, picture.svg]] : undefined,
    }),
    make("h3", {}, `Most probable donors of ${user.id}`),
    donorTable(user, section),
  );
}

function itemTable(items, names) {
  const best = d3.max(items, (one) => one.score) || 1;
  const rows = items.map(({ score }, i) =>
    make("tr", {}, numberCell(String(i + 1)), rowHead(names[i]), numberCell(formatValue(score), meter(score / best))),
  );
  return table([numberHead("rank"), "item", numberHead("score")], rows, { "aria-label": "recommended items" });
}

function donorTable(user, section) {
  const rows = user.donors.map(([donor, probability, n, common]) =>
    make(
      "tr",
      {},
      rowHead(section.user_names[donor]),
      numberCell(percent(probability), meter(probability)),
      make("td", {}, `${common} of ${plural(n, "item")} in common`),
    ),
  );
  return table(["donor", numberHead("probability"), "overlap"], rows, { "aria-label": "donors" });
}

function recommendationRows(user, items, section) {
  const list = (pairs, names) => (pairs ?? []).map(([k, share]) => `${names[k]} ${percent(share, 1)}`).join("; ");
  const rows = items.map(({ name, score, because, donors }, i) => [
    ...[user.id, i + 1, name, score, list(because, section.item_names), list(donors, section.user_names)],
  ]);
  return [["user", "rank", "item", "score", "because of", "donors"], ...rows];
}

function explanation(user, one, section) {
  const bars = (pairs, names, kind) =>
    make(
      "ul",
      { class: "shares" },
      ...pairs.map(([k, share]) =>
        make(
          "li",
          {},
          make("span", {}, names[k]),
          make(
            "span",
            { class: `meter ${kind}`, "aria-hidden": "true" },
            make("i", { style: `width:${Math.round(100 * Math.min(1, share))}%` }),
          ),
          percent(share, share < 0.1 ? 1 : 0),
        ),
      ),
    );
  if (!one.because) return [make("p", {}, make("b", {}, one.name), " is recommended without an explanation.")];
  const total = d3.sum(one.because, ([, share]) => share);
  const parts = [
    make(
      "p",
      {},
      make("b", {}, one.name),
      ` is recommended to ${user.id}: ${plural(one.because.length, "item")} of the history make up ${percent(Math.min(total, 1))} of its score.`,
    ),
    bars(one.because, section.item_names, ""),
  ];
  if (one.donors?.length)
    parts.push(
      make("p", {}, "Of the users whose rows may be copied, these add most:"),
      bars(one.donors, section.user_names, "copied"),
    );
  return parts;
}

// A picture of the items of the history (left) and the recommended items (right); the wider a line, the larger the share.
function flowPicture(user, items, section) {
  const shown = items.slice(0, MAX_FLOW_ROWS);
  const totals = new Map();
  for (const one of shown)
    for (const [item, share] of one.because ?? []) totals.set(item, (totals.get(item) ?? 0) + share);
  const sources = [...totals]
    .sort((a, b) => b[1] - a[1])
    .slice(0, MAX_FLOW_ROWS)
    .map(([item]) => item);
  const height = FLOW_ROW * Math.max(shown.length, sources.length) + 34;
  const [width, left, right, room] = innerWidth < 640 ? [372, 156, 216, 20] : [720, 250, 470, 32]; // on a phone, short names beside each other
  const svg = drawing(width, height, `Shares of the history of ${user.id} in the scores of the recommended items`);
  const at = (i, n) => 34 + ((height - 34) * (i + 0.5)) / n;
  add(svg, "text", { class: "strong", x: left - 8, y: 14, "text-anchor": "end" }, "history");
  add(svg, "text", { class: "strong", x: right + 8, y: 14 }, "recommended");
  const links = shown.flatMap((one, i) =>
    (one.because ?? [])
      .filter(([item]) => sources.includes(item))
      .map(([item, share]) => ({ i, share, from: at(sources.indexOf(item), sources.length), to: at(i, shown.length) })),
  );
  const lines = svg
    .append("g")
    .attr("fill", "none")
    .selectAll("path")
    .data(links)
    .join("path")
    .call(set, {
      d: ({ from, to }) => `M${left},${from}C${(left + right) / 2},${from} ${(left + right) / 2},${to} ${right},${to}`,
      "stroke-width": ({ share }) => Math.max(1, 12 * share),
    });
  svg
    .append("g")
    .selectAll("text")
    .data(sources)
    .join("text")
    .call(set, { class: "large", x: left - 8, y: (_, i) => at(i, sources.length) + 4, "text-anchor": "end" })
    .text((item) => shorten(section.item_names[item], room));
  const names = svg
    .append("g")
    .selectAll("text")
    .data(shown)
    .join("text")
    .call(set, { class: "large", x: right + 8, y: (_, i) => at(i, shown.length) + 4 })
    .text((one) => shorten(one.name, room));
  const mark = (chosen) => {
    lines
      .call(set, {
        stroke: ({ i }) => (i === chosen ? "var(--highlight)" : "var(--edge)"),
        "stroke-opacity": ({ i }) => (i === chosen ? 0.95 : 0.3),
      })
      .filter(({ i }) => i === chosen)
      .raise();
    names.classed("strong", (_, i) => i === chosen);
  };
  return { svg: svg.node(), mark };
}

BODIES.recommendations = recommendationsBody;
