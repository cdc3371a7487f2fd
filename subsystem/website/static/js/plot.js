// @ts-check
/**
 * uPlot and colours for canvases. vendor/uplot/uPlot.iife.min.js is a classic script that leaves a global; this module
 * is not there before that is. Colours are read from the style sheet, anew when the theme changes.
 *
 * @typedef {import("../../../../tests/browser/types/uPlot.js")} Plot
 * @typedef {import("../../../../tests/browser/types/uPlot.js").Options} PlotOptions
 * @typedef {import("../../../../tests/browser/types/uPlot.js").Series} PlotSeries
 * @typedef {import("../../../../tests/browser/types/uPlot.js").Axis} PlotAxis
 * @typedef {import("../../../../tests/browser/types/uPlot.js").AlignedData} PlotData
 * @typedef {typeof import("../../../../tests/browser/types/uPlot.js")} PlotClass
 */

import { root, SiteError } from "./data.js";

const COLORS = 10;
const DASHES = [[], [8, 3], [2, 3], [10, 3, 2, 3], [14, 4]];
const SOURCE = "vendor/uplot/uPlot.iife.min.js";

/** @type {PlotClass} */
export const UPlot = await new Promise((resolve, reject) => {
  const loaded = () => /** @type {any} */ (globalThis).uPlot;
  if (loaded()) return resolve(loaded());
  const asked = document.getElementById("uplot"); // by start.js, where it is still on its way
  const script = asked instanceof HTMLScriptElement ? asked : document.createElement("script");
  script.addEventListener("load", () => resolve(loaded()));
  script.addEventListener("error", () => reject(new SiteError(`${SOURCE} could not be loaded. Is the server still running?`)));
  if (script === asked) return;
  script.src = root() + SOURCE;
  document.head.append(script);
});

/** The moment at `seconds` since 1970 as uPlot wants it: a Date whose local fields read UTC.
 *
 * @param {number} seconds
 */
export function utcDate(seconds) {
  return UPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC");
}

/** @type {Map<string, string>} */
const known = new Map();
document.addEventListener("themechange", () => known.clear());

/**
 * The colour that a CSS variable names.
 *
 * @param {string} name
 */
export function color(name) {
  const kept = known.get(name);
  if (kept) return kept;
  const read = getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#888";
  known.set(name, read);
  return read;
}

/**
 * The colour of the series at this place.
 *
 * @param {number} place
 */
export function seriesColor(place) {
  return color(`--series-${place % COLORS}`);
}

/**
 * Its dash: series that share a colour differ in it.
 *
 * @param {number} place
 */
export function seriesDash(place) {
  return DASHES[Math.floor(place / COLORS) % DASHES.length] ?? [];
}
