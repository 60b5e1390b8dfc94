"use strict";
// The legend of a GraphView and the description of the node in focus.

const WITH_MOUSE =
  "Zoom with the buttons, or with the wheel after a click on the graph. Keys: arrows move, + and − zoom, 0 shows the whole graph, N and P select nodes.";

Object.assign(GraphView.prototype, {
  describe() {
    this.legend.replaceChildren(...this.legendEntries());
    const node = this.selected >= 0 ? this.selected : this.hovered;
    if (node < 0) {
      const hasMouse = window.matchMedia("(hover: hover)").matches;
      this.detail.replaceChildren(
        make(
          "p",
          {},
          `${hasMouse ? "Hover over a node to see its id. Select it" : "Tap a node"} to see its donor and its neighbours.`,
        ),
        note(hasMouse ? `Drag to move. ${WITH_MOUSE}` : "Zoom with the buttons or with two fingers."),
      );
      return;
    }
    const graph = this.data.graphs[this.sample];
    const own = this.edgesOf(0, node).map(([other]) => [other, ""]);
    const facts = this.data.colours.map((one) =>
      one.codes
        ? `${one.name}: ${one.codes[node] < 0 ? "none" : one.classes[one.codes[node]]}`
        : `${one.name}: ${formatValue(one.values[node])}`,
    );
    const part = this.n < this.data.n_nodes ? " among the drawn nodes" : "";
    const lines = [
      make("p", {}, make("b", {}, this.data.ids[node]), facts.length ? ` · ${facts.join(" · ")}` : ""),
      this.chips(`${plural(own.length, "observed neighbour")}${part}`, own),
    ];
    if (graph.donors) lines.push(this.describeSample(graph, node));
    this.detail.replaceChildren(...lines);
  },

  describeSample(graph, node) {
    const donor = this.donorOf(node);
    const name = typeof donor === "number" ? this.data.ids[donor] : `${donor} (not drawn)`;
    const neighbours = this.edgesOf(this.sample, node).map(([other, edge]) => [
      other,
      this.origin(this.sample, node, edge).copied ? "copied" : "other",
    ]);
    const copied = neighbours.filter(([, kind]) => kind === "copied").length;
    const rest = neighbours.length - copied;
    const origin = donor === node ? "it keeps its own neighbours" : `its donor is ${name}`;
    const text = `In ${graph.title}, ${origin}: ${plural(copied, "neighbour")} ${donor === node ? "kept" : "copied from the donor"}${rest ? `, ${rest} from the donors of its neighbours` : ""}`;
    return this.chips(
      text,
      neighbours.sort((a, b) => d3.ascending(a[1], b[1])),
    );
  },

  chips(text, nodes) {
    const list = nodes
      .slice(0, MAX_CHIPS)
      .map(([node, kind]) =>
        make(
          "li",
          {},
          make("button", { type: "button", class: kind, onclick: () => this.select(node, true) }, this.data.ids[node]),
        ),
      );
    if (nodes.length > MAX_CHIPS) list.push(make("li", {}, `and ${nodes.length - MAX_CHIPS} more`));
    return make("div", {}, make("span", { class: "quiet" }, text), make("ul", { class: "chips" }, ...list));
  },

  legendEntries() {
    const one = this.data.colours[this.colouring];
    const entries = [];
    if (one?.codes) {
      one.classes.slice(0, MAX_CLASSES_SHOWN).forEach((name, code) =>
        entries.push(
          make(
            "li",
            {},
            make(
              "button",
              {
                type: "button",
                "aria-pressed": String(this.onlyClass === code),
                title: "show this class alone",
                onclick: () => this.showClass(this.onlyClass === code ? -1 : code),
              },
              dot(classColour(code, one.classes.length)),
              name,
            ),
          ),
        ),
      );
      if (one.classes.length > MAX_CLASSES_SHOWN)
        entries.push(legendEntry("", `and ${one.classes.length - MAX_CLASSES_SHOWN} more`));
      if (one.codes.includes(-1)) entries.push(legendEntry(dot("var(--edge)"), "unlabelled"));
    } else if (one) {
      entries.push(
        legendEntry(
          make("i", { class: "ramp", style: `background:linear-gradient(90deg,${RAMP.join(",")})` }),
          `${one.name}, 0 to ${formatValue(d3.max(one.values))}`,
        ),
      );
    }
    const hasSample = this.data.graphs.length > 1;
    if (this.selected >= 0 || this.hovered >= 0) {
      entries.push(legendEntry(lineMark("ink"), "observed edge of the node"));
      if (hasSample)
        entries.push(
          legendEntry(lineMark("copied"), "edge of the donor, copied in the sample"),
          legendEntry(lineMark("copied", "dashed"), "edge copied from the donor of the other end"),
          legendEntry(lineMark("copied", "dotted"), "from the node to its donor"),
        );
    } else {
      entries.push(legendEntry(lineMark("edge"), "observed edge"));
      if (hasSample) entries.push(legendEntry(lineMark("copied"), "copied edge that was not observed"));
    }
    return entries;
  },
});
