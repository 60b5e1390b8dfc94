"use strict";
// Adds the sections to the page; the theme, the navigation and printing.

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  button.textContent = theme === "dark" ? "☀" : "☾";
  button.setAttribute("aria-label", theme === "dark" ? "Switch to light" : "Switch to dark");
  for (const view of graphViews.values()) {
    view.describe();
    view.draw();
  }
}

function startTheme() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const preferred = () => (dark.matches ? "dark" : "light");
  restoring("theme", (theme) => setTheme(["dark", "light"].includes(theme) ? theme : preferred()));
  dark.addEventListener("change", () => setTheme(preferred()));
  document.getElementById("theme").addEventListener("click", () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    setTheme(theme);
    remember("theme", theme === preferred() ? null : theme);
  });
}

function startNavigation(sections, links) {
  const go = (id) => document.getElementById(id)?.scrollIntoView({ behavior: "instant" });
  let current = -1;
  const follow = () => {
    // the last section that starts in the upper third of the window, or that ends the page
    const isEnd = scrollY > 0 && scrollY + innerHeight > document.documentElement.scrollHeight - 4;
    const found = isEnd
      ? sections.length - 1
      : sections.findLastIndex((section) => section.getBoundingClientRect().top < innerHeight / 3);
    if (found === current) return;
    current = found;
    links.forEach((link, i) =>
      i === found ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current"),
    );
    links[found]?.parentElement.scrollTo({ left: links[found].offsetLeft - 40 });
    remember("at", found > 0 ? sections[found].id : null);
  };
  links.forEach((link, i) =>
    link.addEventListener("click", (event) => {
      event.preventDefault();
      go(sections[i].id);
      sections[i].querySelector("h2").focus({ preventScroll: true });
    }),
  );
  restoring("at", (id) => {
    if (id) go(id);
  });
  window.addEventListener("scroll", follow, { passive: true });
  follow();
}

// On paper everything is open, and in the colours for white.
function startPrinting() {
  let undo = [];
  window.addEventListener("beforeprint", () => {
    if (undo.length) return;
    const theme = document.documentElement.dataset.theme;
    const closed = [...document.querySelectorAll("details:not([open])")].filter((one) => !one.fill);
    undo = [
      () => setTheme(theme),
      ...closed.map((one) => () => {
        one.open = false;
      }),
    ];
    for (const one of closed) one.open = true;
    setTheme("light");
    for (const view of graphViews.values()) view.paint();
  });
  window.addEventListener("afterprint", () => {
    for (const act of undo) act();
    undo = [];
  });
}

function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  document.getElementById("origin").textContent = data.origin;
  document.getElementById("footer").textContent =
    `Written by nodecopy ${data.version}. Drawn with D3. This page loads nothing from the network.`;
  const sections = data.sections.map((section, i) => {
    const id = `section-${i}`;
    return make(
      "section",
      { id, "aria-labelledby": `${id}-title`, "data-kind": section.kind },
      make("h2", { id: `${id}-title`, tabindex: -1 }, section.title),
      section.headline
        ? make("p", { class: "headline" }, section.headline.replace(/ (?=[%±])|(?<=±) /g, "\u00a0"))
        : null,
      section.text ? make("p", {}, section.text) : null,
      BODIES[section.kind](section),
    );
  });
  const links = data.sections.map((section, i) => make("a", { href: `#section-${i}` }, section.title));
  document.getElementById("contents").append(...links);
  document.getElementById("main").append(...sections);
  const link = document.getElementById("link");
  link.addEventListener("click", () => copyLink(link));
  startTheme();
  startNavigation(sections, links);
  startPrinting();
  document.documentElement.dataset.ready = "yes";
}

start();
