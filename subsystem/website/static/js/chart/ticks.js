// @ts-check
/** What stands at the y axis, and how much room is around the values. Touches no page. */

import { evenSplits, logSplits, percentLabels, tickLabels } from "../format.js";

const PIXELS_EACH = 48;

/**
 * An extent with some room on both sides; not below 0 where no value is.
 *
 * @param {readonly [number, number]} extent
 * @param {boolean} log
 * @returns {[number, number]}
 */
export function padded([min, max], log) {
  if (log) return min === max ? [min / 1.2, max * 1.2] : [min / (max / min) ** 0.06, max * (max / min) ** 0.06];
  const pad = max === min ? Math.abs(max) * 0.1 || 1 : (max - min) * 0.08;
  return [min >= 0 ? Math.max(0, min - pad) : min - pad, max + pad];
}

/**
 * @param {number} min
 * @param {number} max
 * @param {boolean} log
 * @param {number} height in pixels
 */
export function ySplits(min, max, log, height) {
  return log ? logSplits(min, max) : evenSplits(min, max, Math.max(2, Math.floor(height / PIXELS_EACH)));
}

/**
 * @param {readonly number[]} splits
 * @param {string} scale
 */
export function yLabels(splits, scale) {
  if (scale === "ratio") return percentLabels(splits);
  const { labels, unit } = tickLabels(splits, scale);
  return labels.map((label) => (unit ? `${label} ${unit}` : label));
}
