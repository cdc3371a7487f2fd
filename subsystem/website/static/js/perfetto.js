// @ts-check
/** A click opens a trace of this site in ui.perfetto.dev, which is handed the file by the browser and sends it nowhere. */

import { el } from "./dom.js";

const PERFETTO = "https://ui.perfetto.dev";
const ASK_MS = 100;
const PATIENCE_MS = 30_000;

/** A button behind each link to a trace. */
export function offerPerfetto() {
  for (const link of /** @type {HTMLAnchorElement[]} */ ([...document.querySelectorAll("a[data-perfetto]")])) {
    const said = el("span", { role: "status", class: "quiet" });
    const button = el("button", { type: "button", onclick: () => void open(link, said) }, "Open in Perfetto");
    link.after(" ", button, " ", said);
  }
}

/**
 * Perfetto answers a PING once it can take a trace.
 *
 * @param {HTMLAnchorElement} link
 * @param {HTMLElement} said
 */
async function open(link, said) {
  const other = globalThis.open(PERFETTO);
  if (!other) {
    said.textContent = "Your browser blocked the new window.";
    return;
  }
  said.textContent = "Reading …";
  const answer = await fetch(link.href).catch(() => null);
  if (!answer?.ok) {
    other.close();
    said.textContent = "The trace could not be read. Download it, and drop it into ui.perfetto.dev.";
    return;
  }
  const buffer = await answer.arrayBuffer();
  const asking = setInterval(() => other.postMessage("PING", PERFETTO), ASK_MS);
  const stop = () => {
    clearInterval(asking);
    removeEventListener("message", hand);
  };
  const patience = setTimeout(() => {
    stop();
    said.textContent = "ui.perfetto.dev does not respond. Download the trace, and drop it into its window.";
  }, PATIENCE_MS);
  /** @param {MessageEvent} event */
  function hand(event) {
    if (event.origin !== PERFETTO || event.data !== "PONG") return;
    clearTimeout(patience);
    stop();
    other?.postMessage({ perfetto: { buffer, title: link.textContent ?? "TVM", url: location.href } }, PERFETTO);
    said.textContent = "";
  }
  addEventListener("message", hand);
}
