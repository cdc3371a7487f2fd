// @ts-check
/**
 * uPlot for modules. vendor/uplot/uPlot.iife.min.js is a classic script that leaves a global; this module asks for it
 * and is not there before that is.
 *
 * @typedef {import("../../../../tests/browser/types/uPlot.js")} Plot
 * @typedef {import("../../../../tests/browser/types/uPlot.js").Options} PlotOptions
 * @typedef {import("../../../../tests/browser/types/uPlot.js").Series} PlotSeries
 * @typedef {import("../../../../tests/browser/types/uPlot.js").Axis} PlotAxis
 * @typedef {import("../../../../tests/browser/types/uPlot.js").AlignedData} PlotData
 * @typedef {typeof import("../../../../tests/browser/types/uPlot.js")} PlotClass
 */

import { root, SiteError } from "./data.js";

const SOURCE = "vendor/uplot/uPlot.iife.min.js";

/** @type {PlotClass} */
export const UPlot = await new Promise((resolve, reject) => {
  const script = document.createElement("script");
  script.src = root() + SOURCE;
  script.addEventListener("load", () => resolve(/** @type {any} */ (globalThis).uPlot));
  script.addEventListener("error", () => reject(new SiteError(`${SOURCE} cannot be reached. Is the server still there?`)));
  document.head.append(script);
});

/**
 * The value of a CSS variable at this moment, which is what canvases have to ask for.
 *
 * @param {string} name
 */
export function cssColor(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#888";
}

/** The moment at `seconds` since 1970 as uPlot wants it: a Date whose local fields read UTC.
 *
 * @param {number} seconds
 */
export function utcDate(seconds) {
  return UPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC");
}
