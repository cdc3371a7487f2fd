// @ts-check
/**
 * The global that vendor/uplot/uPlot.iife.min.js leaves, for modules; in a page that script stands before them.
 *
 * @typedef {import("../../../../tests/browser/types/uPlot.js")} Plot
 * @typedef {import("../../../../tests/browser/types/uPlot.js").Options} PlotOptions
 * @typedef {import("../../../../tests/browser/types/uPlot.js").Series} PlotSeries
 * @typedef {import("../../../../tests/browser/types/uPlot.js").Axis} PlotAxis
 * @typedef {import("../../../../tests/browser/types/uPlot.js").AlignedData} PlotData
 * @typedef {typeof import("../../../../tests/browser/types/uPlot.js")} PlotClass
 */

/** @type {PlotClass} */
export const UPlot = /** @type {{uPlot: PlotClass}} */ (/** @type {unknown} */ (globalThis)).uPlot;

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
