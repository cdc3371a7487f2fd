// @ts-check
/** The keys of every page and of charts, as a dialog. */

import { el } from "./dom.js";

const CHART_KEYS = [
  ["drag", "zoom into a range"],
  ["double click, 0", "all nights again"],
  ["shift and drag, shift and wheel", "move in time"],
  ["ctrl and wheel, + and \u2212", "zoom"],
  ["\u2190 \u2192", "the night before, the next night"],
  ["\u2191 \u2193", "another series"],
  ["click, Enter", "keep the card of a point; Esc closes it"],
];

/**
 * The list of keys.
 *
 * @param {Record<string, string[]>} places the letters behind g, with an address and its name
 */
export function openHelp(places) {
  const row = (/** @type {string} */ keys, /** @type {string} */ words) => [
    el("dt", {}, ...keys.split(", ").flatMap((key, at) => [at ? ", " : "", el("kbd", {}, key)])),
    el("dd", {}, words),
  ];
  const dialog = el(
    "dialog",
    { class: "help", "aria-labelledby": "help-title" },
    el("h2", { id: "help-title" }, "Keys"),
    el(
      "dl",
      {},
      ...row("/", "search series, experiments, nights"),
      ...row("j, k", "next incident, incident before"),
      ...Object.entries(places).flatMap(([key, [, words]]) => row(`g ${key}`, `go to ${words ?? ""}`)),
      ...row("?", "this help"),
    ),
    el("h3", {}, "On a chart"),
    el("dl", {}, ...CHART_KEYS.flatMap(([keys, words]) => row(keys ?? "", words ?? ""))),
    el("form", { method: "dialog" }, el("button", {}, "Close")),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
