"use strict";
// Downloads: tables as CSV, pictures as SVG and PNG.

const COPIED_STYLES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-opacity",
  "opacity",
  "font-size",
  "font-weight",
  "font-family",
  "text-anchor",
  "paint-order",
  "image-rendering",
];
const CONTROL_CHARACTERS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g; // not allowed in XML

// Returns buttons; rows() are the lines of a table, and pictures() pairs of a title and an SVG element.
function downloads(name, { rows, pictures }) {
  const file =
    name
      .toLowerCase()
      .replace(/[^\p{L}\p{N}]+/gu, "-")
      .replace(/^-|-$/g, "")
      .slice(0, 60) || "download";
  const entry = (kind, act) =>
    make("button", { type: "button", "aria-label": `Download ${name} as ${kind}`, onclick: act }, kind);
  return make(
    "div",
    { class: "downloads", role: "group", "aria-label": `Downloads of ${name}` },
    make("span", { "aria-hidden": "true" }, "⤓"),
    rows
      ? entry("CSV", () => save(`${file}.csv`, new Blob([rows().map(csvLine).join("")], { type: "text/csv" })))
      : null,
    pictures
      ? entry("SVG", () => save(`${file}.svg`, new Blob([compose(pictures())], { type: "image/svg+xml" })))
      : null,
    pictures ? entry("PNG", async () => save(`${file}.png`, await rasterise(compose(pictures())))) : null,
  );
}

function save(name, blob) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// An apostrophe keeps a spreadsheet from reading text as a formula.
function csvLine(cells) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const text = /^[=+\-@＝＋－＠\t\r]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return `${cells.map(cell).join(",")}\r\n`;
}

// Returns the text of one SVG with all pictures, in up to three columns, with the colours of the page.
function compose(pictures) {
  const columns = Math.min(pictures.length, 3);
  const gap = 24;
  const sizes = pictures.map(([, svg]) => svg.getAttribute("viewBox").split(" ").map(Number));
  const width = Math.max(...sizes.map((box) => box[2]));
  const height = Math.max(...sizes.map((box) => box[3])) + 24;
  const rows = Math.ceil(pictures.length / columns);
  const total = [columns * (width + gap) + gap, rows * (height + gap) + gap];
  const sheet = d3.create("svg").call(set, {
    xmlns: "http://www.w3.org/2000/svg",
    viewBox: `0 0 ${total.join(" ")}`,
    width: total[0],
    height: total[1],
  });
  add(sheet, "rect", { width: total[0], height: total[1], fill: colour("panel") });
  pictures.forEach(([title, svg], i) => {
    const x = gap + (i % columns) * (width + gap);
    const y = gap + Math.floor(i / columns) * (height + gap);
    add(
      sheet,
      "text",
      {
        x: x,
        y: y + 4,
        fill: colour("ink"),
        "font-family": "system-ui, sans-serif",
        "font-size": 14,
        "font-weight": 600,
      },
      title,
    );
    const copy = d3.select(sheet.node().appendChild(standalone(svg)));
    copy.call(set, { x: x, y: y + 16, width: sizes[i][2], height: sizes[i][3] });
  });
  return new XMLSerializer().serializeToString(sheet.node()).replace(CONTROL_CHARACTERS, "");
}

function standalone(svg) {
  const copy = svg.cloneNode(true);
  if (!svg.isConnected) return copy;
  const copies = copy.querySelectorAll("*");
  svg.querySelectorAll("*").forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of COPIED_STYLES)
      if (style.getPropertyValue(name)) copies[i].style.setProperty(name, style.getPropertyValue(name));
  });
  return copy;
}

async function rasterise(text) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = make("canvas", { width: 2 * image.width, height: 2 * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

// Draws as the context of a canvas does, into an SVG element; it knows what the graphs use.
class SvgPen {
  constructor(width, height) {
    this.svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${height}`);
    Object.assign(this, {
      dash: [],
      scale: 1,
      dx: 0,
      dy: 0,
      globalAlpha: 1,
      lineWidth: 1,
      strokeStyle: "none",
      fillStyle: "none",
      textAlign: "left",
      font: "",
    });
    this.measure = document.createElement("canvas").getContext("2d");
  }
  setTransform(a, b, c, d, e, f) {
    [this.scale, this.dx, this.dy] = [a, e, f];
  }
  clearRect() {}
  setLineDash(dash) {
    this.dash = dash;
  }
  beginPath() {
    this.path = "";
  }
  place(x, y) {
    return `${(this.dx + this.scale * x).toFixed(1)},${(this.dy + this.scale * y).toFixed(1)}`;
  }
  moveTo(x, y) {
    this.path += `M${this.place(x, y)}`;
  }
  lineTo(x, y) {
    this.path += `${this.path ? "L" : "M"}${this.place(x, y)}`;
  }
  arc(x, y, radius) {
    const r = (this.scale * radius).toFixed(1);
    this.path += `M${this.place(x - radius, y)}A${r},${r} 0 1 0 ${this.place(x + radius, y)}A${r},${r} 0 1 0 ${this.place(x - radius, y)}`;
  }
  stroke() {
    const line = this.svg.append("path").call(set, { d: this.path, fill: "none", stroke: this.strokeStyle });
    line.call(set, { "stroke-width": this.scale * this.lineWidth, "stroke-opacity": this.globalAlpha });
    if (this.dash.length) line.attr("stroke-dasharray", this.dash.map((part) => this.scale * part).join(" "));
  }
  fill() {
    this.svg.append("path").call(set, { d: this.path, fill: this.fillStyle, "fill-opacity": this.globalAlpha });
  }
  measureText(text) {
    this.measure.font = this.font;
    return this.measure.measureText(text);
  }
  text(text, x, y) {
    const [dx, dy] = this.place(x, y).split(",");
    return this.svg
      .append("text")
      .call(set, {
        x: dx,
        y: dy,
        style: `font:${this.font}`,
        "text-anchor": this.textAlign === "right" ? "end" : "start",
      })
      .text(text);
  }
  strokeText(text, x, y) {
    this.text(text, x, y).call(set, {
      fill: "none",
      stroke: this.strokeStyle,
      "stroke-width": this.lineWidth,
      "stroke-linejoin": "round",
    });
  }
  fillText(text, x, y) {
    this.text(text, x, y).attr("fill", this.fillStyle);
  }
}
