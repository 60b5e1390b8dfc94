"use strict";
// The view in the address: what is chosen, so that a link reopens it. "#at=section-2&g0.node=17"

const viewState = new Map();
const restorers = new Map();

function readAddress() {
  viewState.clear();
  for (const part of location.hash.slice(1).split("&")) {
    const [key, value] = part.includes("=") ? part.split(/=(.*)/s) : ["at", part];
    try {
      if (value) viewState.set(decodeURIComponent(key), decodeURIComponent(value));
    } catch {
      /* not an address of this page */
    }
  }
}

function remember(key, value) {
  if ((viewState.get(key) ?? "") === String(value ?? "")) return;
  if (value === null || value === undefined || value === "") viewState.delete(key);
  else viewState.set(key, String(value));
  const parts = [...viewState].map(([name, text]) => `${encodeURIComponent(name)}=${encodeURIComponent(text)}`);
  history.replaceState(null, "", `#${parts.join("&")}`);
}

// Calls a function with the remembered text of a key now, and whenever another address is opened; the last one of a key counts.
function restoring(key, act) {
  restorers.set(key, act);
  act(viewState.get(key) ?? "");
}

async function copyLink(button) {
  try {
    await navigator.clipboard.writeText(location.href);
  } catch {
    // not allowed here: the older way
    const field = make("textarea", { style: "position:fixed;opacity:0" });
    field.value = location.href;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  button.textContent = "Copied";
  setTimeout(() => {
    button.textContent = "Copy link";
  }, 1500);
}

readAddress();
window.addEventListener("hashchange", () => {
  readAddress();
  for (const key of [...restorers.keys()]) restorers.get(key)(viewState.get(key) ?? "");
});
