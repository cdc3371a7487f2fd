// @ts-check
/** The colours of canvases, read from the style sheet, anew when the theme changes; dashes beyond the tenth series. */

import { cssColor } from "./plot.js";

const COLORS = 10;
const DASHES = [[], [8, 3], [2, 3], [10, 3, 2, 3], [14, 4]];

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
  const read = cssColor(name);
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
