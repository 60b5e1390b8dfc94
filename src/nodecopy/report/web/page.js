"use strict";
// Adds the sections to the page and switches between the light and the dark theme.

const BODIES = { statistics: statisticsBody, classification: classificationBody, attack: attackBody, recommendations: recommendationsBody, tables: tablesBody, graphs: (section) => new GraphView(section).element };

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  button.textContent = theme === "dark" ? "☀" : "☾";
  button.setAttribute("aria-label", theme === "dark" ? "Switch to light" : "Switch to dark");
  for (const view of graphViews.values()) { view.describe(); view.draw(); }
}

function start() {
  const data = JSON.parse(document.getElementById("data").textContent), dark = window.matchMedia("(prefers-color-scheme: dark)");
  setTheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
  document.getElementById("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  document.getElementById("origin").textContent = data.origin;
  document.getElementById("footer").textContent = `Written by nodecopy ${data.version}. Drawn with D3 ${d3.version}. This page loads nothing from the network.`;
  const main = document.getElementById("main"), contents = document.getElementById("contents");
  data.sections.forEach((section, i) => {
    const id = `section-${i}`;
    contents.append(make("a", { href: `#${id}` }, section.title));
    main.append(make("section", { id, "aria-labelledby": `${id}-title`, "data-kind": section.kind },
      make("h2", { id: `${id}-title` }, section.title), section.headline ? make("p", { class: "headline" }, section.headline) : null, section.text ? make("p", {}, section.text) : null, BODIES[section.kind](section)));
  });
  document.documentElement.dataset.ready = "yes";
}

start();
