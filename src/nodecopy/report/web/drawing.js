"use strict";
// Functions that all sections use. Text enters the page as text nodes only, so that no id becomes markup.

const PALETTE = ["#4269d0", "#e08214", "#3a9a5b", "#c0392b", "#8e5bb5", "#17a2b8", "#a67c52", "#d467a5", "#7f8c3a", "#8a94a3"];

function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const classColour = (code, n) => code < 0 ? colour("edge") : n <= PALETTE.length ? PALETTE[code] : String(d3.hcl(15 + 360 * code / n, 58, code % 2 ? 68 : 52));
const count = d3.format(",");
const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
const readableName = (name) => name.replace(/^n_/, "").replaceAll("_", " ");

function formatValue(value) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value)) return count(value);
  return Math.abs(value) >= 1000 ? d3.format(",.0f")(value) : Math.abs(value) < 0.001 && value !== 0 ? d3.format(".2e")(value) : d3.format(".3~g")(value);
}

function percent(value, digits = 0) {
  return value === null ? "–" : d3.format(`.${digits}f`)(100 * value) + " %";
}

function legendEntry(mark, text) {
  return make("li", {}, mark, text);
}

// Returns an empty drawing of a fixed shape that scales with its column.
function drawing(width, height, label) {
  return d3.create("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("role", "img").attr("aria-label", label);
}
