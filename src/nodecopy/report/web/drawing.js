"use strict";
// Functions that all sections use. Text enters the page as text nodes only, so that no id becomes markup.

const BODIES = {}; // the content of a section by its kind; each file adds its own
const N_CLASS_COLOURS = 10;
const RAMP = ["#fde725", "#5ec962", "#21918c", "#3b528b", "#440154"]; // viridis, from certain to uncertain

function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// The colour of a class as CSS; with more classes than colours, hues around the circle.
function classColour(code, n) {
  if (code < 0) return "var(--edge)";
  return n <= N_CLASS_COLOURS ? `var(--class-${code})` : String(d3.hcl(15 + (360 * code) / n, 50, code % 2 ? 66 : 56));
}
const resolve = (css) => (css.startsWith("var(") ? colour(css.slice(6, -1)) : css); // a canvas knows no variables

function rampColour(share) {
  const place = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1);
  const i = Math.min(Math.floor(place), RAMP.length - 2);
  return d3.interpolateRgb(RAMP[i], RAMP[i + 1])(place - i);
}

const count = d3.format(",");
const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
const readableName = (name) => name.replace(/^n_/, "").replaceAll("_", " ");
const shorten = (text, n) => (text.length > n ? `${text.slice(0, Math.max(1, n - 1))}…` : text);

function formatValue(value) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value)) return count(value);
  const size = Math.abs(value);
  return d3.format(size >= 1000 ? ",.0f" : size < 0.001 ? ".2e" : ".3~g")(value);
}

const formatDifference = (value) => d3.format("+.1f")(+value.toFixed(1) || 0); // no -0.0
const percent = (value, digits = 0) => (value === null ? "–" : `${d3.format(`.${digits}f`)(100 * value)} %`);
const percentRange = ([low, high], digits = 0) => `${d3.format(`.${digits}f`)(100 * low)} to ${percent(high, digits)}`;

const legendEntry = (mark, text) => make("li", {}, mark, text);
const dot = (fill) => make("i", { class: "dot", style: `background:${fill}` });
const lineMark = (name, style = "") => make("i", { class: `line ${style}`, style: `border-color:var(--${name})` });
const button = (text, label, act) =>
  make("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);

function meter(value) {
  return make(
    "span",
    { class: "meter", "aria-hidden": "true" },
    make("i", { style: `width:${Math.round(100 * Math.min(1, Math.max(0, value)))}%` }),
  );
}

const numberHead = (...children) => make("th", { scope: "col", class: "number" }, ...children);
const numberCell = (...children) => make("td", { class: "number" }, ...children);
const rowHead = (...children) => make("th", { scope: "row" }, ...children);
const note = (text) => make("p", { class: "quiet" }, text);

function table(heads, rows, options = {}) {
  const head = make(
    "tr",
    {},
    ...heads.map((text) => (typeof text === "string" ? make("th", { scope: "col" }, text) : text)),
  );
  const body = make("table", options, make("thead", {}, head), make("tbody", {}, ...rows));
  return make(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": options["aria-label"] ?? "table" },
    body,
  );
}

// Sets attributes of a selection of D3, given as one object: selection.call(set, { x: 1, y: 2 }).
const set = (selection, attributes) =>
  Object.entries(attributes).forEach(([name, value]) => selection.attr(name, value));

// Appends an element with attributes, and perhaps a text, to a selection of D3.
function add(parent, tag, attributes, text) {
  const element = parent.append(tag).call(set, attributes);
  return text === undefined ? element : element.text(text);
}

// Returns an empty drawing of a fixed shape that scales with its column.
function drawing(width, height, label) {
  return d3.create("svg").call(set, { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
}

const pathOf = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("");
