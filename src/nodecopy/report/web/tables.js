"use strict";
// The tables of predictions, of recommendations and of results.

const ROWS_AT_ONCE = 12;

function meter(value) {
  return make("span", { class: "meter", "aria-hidden": "true" }, make("i", { style: `width:${Math.round(100 * Math.min(1, Math.max(0, value)))}%` }));
}

function classificationBody(section) {
  const parts = section.evaluations.length ? [evaluationCharts(section.evaluations), make("h3", {}, "Predictions, the most uncertain first")] : [];
  return make("div", {}, ...parts, nodeTable(section));
}

function nodeTable(section) {
  const name = (code) => code < 0 ? "–" : section.classes[code], hasTruth = section.truth.some((code) => code >= 0);
  const columns = [
    { head: "node", value: (i) => section.ids[i] }, { head: "predicted", value: (i) => name(section.predicted[i]) },
    ...(hasTruth ? [{ head: "truth", value: (i) => name(section.truth[i]) }] : []),
    ...["probability", "total", "aleatoric", "epistemic"].map((head) => ({ head, value: (i) => section[head][i], number: true })),
  ];
  const state = { by: columns.findIndex((one) => one.head === "total"), descending: true, filter: "", n: ROWS_AT_ONCE };
  const body = make("tbody"), more = make("button", { type: "button", onclick: () => { state.n += 50; fill(); } }), status = make("span", { class: "quiet", "aria-live": "polite" });
  const heads = columns.map(({ head, number }, i) => make("th", { scope: "col", class: number ? "number" : null },
    make("button", { type: "button", onclick: () => { state.descending = state.by === i ? !state.descending : Boolean(number); state.by = i; fill(); } }, head)));
  const cell = (i, { head, value, number }) => {
    if (head === "node") return make("th", { scope: "row" }, locator(section.graph, section.ids[i]));
    if (head === "probability") return make("td", { class: "number" }, percent(value(i)), meter(value(i)));
    const wrong = head === "predicted" && section.truth[i] >= 0 && section.truth[i] !== section.predicted[i];
    return make("td", { class: number ? "number" : wrong ? "wrong" : null }, number ? d3.format(".3f")(value(i)) : value(i) + (wrong ? " ✗" : ""));
  };
  function fill() {
    const { value, number } = columns[state.by], order = state.descending ? d3.descending : d3.ascending;
    const compare = number ? (a, b) => order(value(a), value(b)) : (a, b) => (state.descending ? -1 : 1) * value(a).localeCompare(value(b), undefined, { numeric: true });
    const matches = d3.range(section.ids.length).filter((i) => !state.filter || section.ids[i].toLowerCase().includes(state.filter)).sort(compare);
    heads.forEach((head, i) => i === state.by ? head.setAttribute("aria-sort", state.descending ? "descending" : "ascending") : head.removeAttribute("aria-sort"));
    body.replaceChildren(...matches.slice(0, state.n).map((i) => make("tr", {}, ...columns.map((column) => cell(i, column)))));
    more.hidden = matches.length <= state.n;
    more.textContent = `Show ${Math.min(50, matches.length - state.n)} more`;
    status.textContent = `${count(Math.min(state.n, matches.length))} of ${plural(matches.length, "node")}` +
      (section.n_nodes > section.ids.length ? `; the table holds the ${count(section.ids.length)} most uncertain of ${count(section.n_nodes)} nodes` : "");
  }
  const search = make("input", { type: "search", placeholder: "part of an id", oninput: (event) => { state.filter = event.target.value.toLowerCase(); state.n = ROWS_AT_ONCE; fill(); } });
  fill();
  return make("div", {}, make("div", { class: "tools" }, make("label", {}, "find", search), status),
    make("div", { class: "scroll" }, make("table", { class: "nodes" }, make("thead", {}, make("tr", {}, ...heads)), body)), make("div", { class: "tools" }, more),
    make("p", { class: "quiet" }, "Uncertainty is measured in nats. Total uncertainty (predictive entropy) = aleatoric uncertainty (mean entropy of the networks) + epistemic uncertainty (disagreement of the networks)."));
}

// Returns a node's id; where the node is drawn, a button that selects it in the graph.
function locator(graph, id) {
  const view = graphViews.get(graph), node = view && view.number.get(id);
  if (node === undefined) return id;
  return make("button", { type: "button", title: "select in the graph", onclick: () => {
    view.select(node, true);
    view.element.closest("section").scrollIntoView();
    view.panels[0].canvas.focus({ preventScroll: true });
  } }, id);
}

function recommendationsBody(section) {
  const place = make("div", { "aria-live": "polite" });
  const show = (i) => place.replaceChildren(recommendationsOf(section.users[i], section));
  const select = make("select", { onchange: (event) => show(+event.target.value) }, ...section.users.map((user, i) => make("option", { value: i }, user.id)));
  const number = section.users.length < section.n_users ? `${count(section.users.length)} of ${plural(section.n_users, "user")}` : null;
  if (section.users.length) show(0);
  return make("div", {}, make("div", { class: "tools" }, make("label", {}, "user", select), make("span", { class: "quiet" }, number ?? "")), place);
}

function recommendationsOf(user, section) {
  const best = d3.max(user.items, (item) => item.score) || 1, rest = user.n_items - user.history.length;
  const reasons = [["because_of", "because of", section.item_names], ["donors", "donors", section.user_names]].filter(([key]) => user.items.some((item) => item[key]));
  const chips = (parts, names) => make("td", {}, make("ul", { class: "chips" }, ...(parts ?? []).map(([number, share]) => make("li", { class: names === section.user_names ? "copied" : null }, names[number], make("small", {}, ` ${percent(share)}`)))));
  const items = user.items.map((item, i) => make("tr", {}, make("td", { class: "number" }, String(i + 1)),
    make("th", { scope: "row" }, section.item_names[item.item]), make("td", {}, meter(item.score / best)), ...reasons.map(([key, , names]) => chips(item[key], names))));
  const donors = user.donors.map((donor) => make("tr", {}, make("th", { scope: "row" }, section.user_names[donor.user]), make("td", { class: "number" }, percent(donor.probability), meter(donor.probability)),
    make("td", {}, `${donor.n_common} of ${plural(donor.n_items, "item")} in common`)));
  const table = (heads, rows) => make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, ...rows)));
  return make("div", {},
    make("h3", {}, `History of ${user.id}: ${plural(user.n_items, "item")}`), make("ul", { class: "chips" }, ...user.history.map((item) => make("li", {}, section.item_names[item])), rest > 0 ? make("li", {}, `and ${count(rest)} more`) : null),
    make("h3", {}, "Recommended items"), table(["rank", "item", "score", ...reasons.map(([, head]) => head)], items),
    make("h3", {}, `Most probable donors of ${user.id}`), table(["donor", "probability", "overlap"], donors));
}

function tablesBody(section) {
  return make("div", {}, ...section.experiments.map((experiment, i) => make("details", { open: i === 0 },
    make("summary", {}, `${experiment.title} (${experiment.name})`), ...experiment.groups.flatMap((group) => [make("h3", {}, group.dataset), resultTable(group)]),
    make("p", { class: "quiet" }, Object.entries(experiment.origin).map(([key, values]) => `${key} ${values.join("; ")}`).join(" · ")))));
}

function resultTable(group) {
  const fixed = d3.format(".1f"), spread = (mean, std) => `${fixed(mean)}${std == null ? "" : ` ± ${fixed(std)}`}`;
  const cell = (one) => {
    if (!one || (one.mean == null && one.published == null)) return make("td", {}, "–");
    const ours = one.mean == null ? "not run" : spread(one.mean, one.std);
    const verdict = one.verdict ? [" · ", make("span", { class: one.verdict }, `${one.verdict} ${d3.format("+.1f")(one.difference)}`)] : [];
    return make("td", {}, one.best ? make("b", {}, ours) : ours, one.published == null ? null : make("small", {}, `published ${spread(one.published, one.published_std)}`, ...verdict));
  };
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": group.dataset }, make("table", { class: "results" },
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "method"), ...group.columns.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, ...group.rows.map((row) => make("tr", {}, make("th", { scope: "row" }, row.method), ...row.cells.map(cell))))));
}
