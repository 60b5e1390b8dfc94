"use strict";
// Nodes by uncertainty, recommendations, and the reproduction tables.

const ROWS_AT_ONCE = 12;

function meter(value) {
  return make("span", { class: "meter", "aria-hidden": "true" }, make("i", { style: `width:${Math.round(100 * Math.min(1, Math.max(0, value)))}%` }));
}

function classificationBody(section) {
  const parts = section.judged.length ? [judgedCharts(section.judged), make("h3", {}, "Nodes, the most uncertain first")] : [];
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
  const body = make("tbody"), more = make("button", { type: "button", onclick: () => { state.n += 50; fill(); } }), said = make("span", { class: "quiet", "aria-live": "polite" });
  const heads = columns.map(({ head, number }, i) => make("th", { scope: "col", class: number ? "number" : null },
    make("button", { type: "button", onclick: () => { state.descending = state.by === i ? !state.descending : Boolean(number); state.by = i; fill(); } }, head)));
  const cell = (i, { head, value, number }) => {
    if (head === "node") return make("th", { scope: "row" }, locator(section.graph, section.ids[i]));
    if (head === "probability") return make("td", { class: "number" }, percent(value(i)), meter(value(i)));
    const wrong = head === "predicted" && section.truth[i] >= 0 && section.truth[i] !== section.predicted[i];
    return make("td", { class: number ? "number" : wrong ? "wrong" : null }, number ? d3.format(".3f")(value(i)) : value(i) + (wrong ? " ✗" : ""));
  };
  function fill() {
    const { value, number } = columns[state.by], way = state.descending ? d3.descending : d3.ascending;
    const compare = number ? (a, b) => way(value(a), value(b)) : (a, b) => (state.descending ? -1 : 1) * value(a).localeCompare(value(b), undefined, { numeric: true });
    const wanted = d3.range(section.ids.length).filter((i) => !state.filter || section.ids[i].toLowerCase().includes(state.filter)).sort(compare);
    heads.forEach((head, i) => i === state.by ? head.setAttribute("aria-sort", state.descending ? "descending" : "ascending") : head.removeAttribute("aria-sort"));
    body.replaceChildren(...wanted.slice(0, state.n).map((i) => make("tr", {}, ...columns.map((column) => cell(i, column)))));
    more.hidden = wanted.length <= state.n;
    more.textContent = `Show ${Math.min(50, wanted.length - state.n)} more`;
    said.textContent = `${count(Math.min(state.n, wanted.length))} of ${plural(wanted.length, "node")}` +
      (section.n_nodes > section.ids.length ? `; the table holds the ${count(section.ids.length)} most uncertain of ${count(section.n_nodes)}` : "");
  }
  const search = make("input", { type: "search", placeholder: "part of an id", oninput: (event) => { state.filter = event.target.value.toLowerCase(); state.n = ROWS_AT_ONCE; fill(); } });
  fill();
  return make("div", {}, make("div", { class: "tools" }, make("label", {}, "find", search), said),
    make("div", { class: "scroll" }, make("table", { class: "nodes" }, make("thead", {}, make("tr", {}, ...heads)), body)), make("div", { class: "tools" }, more),
    make("p", { class: "quiet" }, "Uncertainty in nats: total = aleatoric (each network is unsure) + epistemic (networks on different samples disagree)."));
}

// A node's id; where it is drawn, a button that shows it there.
function locator(graph, id) {
  const view = graphViews.get(graph), node = view && view.number.get(id);
  if (node === undefined) return id;
  return make("button", { type: "button", title: "show in the graph", onclick: () => {
    view.select(node, true);
    view.element.closest("section").scrollIntoView();
    view.panels[0].canvas.focus({ preventScroll: true });
  } }, id);
}

function recommendationsBody(section) {
  const place = make("div", { "aria-live": "polite" });
  const show = (i) => place.replaceChildren(recommendationsOf(section.users[i]));
  const select = make("select", { onchange: (event) => show(+event.target.value) }, ...section.users.map((user, i) => make("option", { value: i }, user.id)));
  const said = section.users.length < section.n_users ? `${count(section.users.length)} of ${plural(section.n_users, "user")} are here` : null;
  if (section.users.length) show(0);
  return make("div", {}, make("div", { class: "tools" }, make("label", {}, "user", select), make("span", { class: "quiet" }, said ?? "")), place);
}

function recommendationsOf(user) {
  const best = d3.max(user.items, (item) => item.score) || 1, rest = user.n_items - user.history.length;
  const items = user.items.map((item, i) => make("tr", {}, make("td", { class: "number" }, String(i + 1)),
    make("th", { scope: "row" }, item.id), make("td", {}, meter(item.score / best)),
    make("td", {}, make("ul", { class: "chips" }, ...item.donors.map((d) => make("li", { class: "copied" }, user.donors[d].id))))));
  const donors = user.donors.map((donor) => make("tr", {}, make("th", { scope: "row" }, donor.id), make("td", { class: "number" }, percent(donor.probability), meter(donor.probability)),
    make("td", {}, `${donor.n_common} of ${plural(donor.n_items, "item")} in common`)));
  const table = (heads, rows) => make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, ...rows)));
  return make("div", {},
    make("h3", {}, `${user.id} has ${plural(user.n_items, "item")}`), make("ul", { class: "chips" }, ...user.history.map((item) => make("li", {}, item)), rest > 0 ? make("li", {}, `and ${count(rest)} more`) : null),
    make("div", { class: "columns" },
      make("div", {}, make("h3", {}, "May like"), table(["", "item", "score", "donors who have it"], items)),
      make("div", {}, make("h3", {}, "Whose rows may be copied"), table(["user", "probability", ""], donors))));
}

function tablesBody(section) {
  return make("div", {}, ...section.experiments.map((experiment, i) => make("details", { open: i === 0 },
    make("summary", {}, `${experiment.title} (${experiment.name})`), ...experiment.groups.flatMap((group) => [make("h3", {}, group.dataset), resultTable(group)]),
    make("p", { class: "quiet" }, Object.entries(experiment.origin).map(([key, values]) => `${key} ${values.join("; ")}`).join(" · ")))));
}

function resultTable(group) {
  const fixed = d3.format(".1f"), spread = (mean, std) => `${fixed(mean)}${std === null ? "" : ` ± ${fixed(std)}`}`;
  const cell = (one) => {
    if (!one || (one.mean === null && one.published === null)) return make("td", {}, "–");
    const ours = one.mean === null ? "not run" : spread(one.mean, one.std);
    const verdict = one.verdict ? [" · ", make("span", { class: one.verdict }, `${one.verdict} ${d3.format("+.1f")(one.difference)}`)] : [];
    return make("td", {}, one.best ? make("b", {}, ours) : ours, one.published === null ? null : make("small", {}, `paper ${spread(one.published, one.published_std)}`, ...verdict));
  };
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": group.dataset }, make("table", { class: "results" },
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "method"), ...group.columns.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, ...group.rows.map((row) => make("tr", {}, make("th", { scope: "row" }, row.method), ...row.cells.map(cell))))));
}
