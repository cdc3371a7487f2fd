// @ts-check
/** Points that a scale leaves out: they stand at its edge. */

import { seriesColor } from "../plot.js";

/** @typedef {import("../plot.js").Plot} Plot */

const HALF_PX = 5;

/** Where a value is drawn, at the edge where it is outside. @param {Plot} plot @param {number} value @param {string} scale */
export function heightOf(plot, value, scale) {
  return Math.min(plot.over.clientHeight, Math.max(0, plot.valToPos(value, scale)));
}

/**
 * The points in view outside their scale, and whether above it; members of groups are not looked at.
 *
 * @param {Plot} plot
 * @param {import("./chart.js").View} view
 */
export function pointsOutside(plot, view) {
  const [first, last] = plot.series[0]?.idxs ?? [0, -1];
  /** @type {{line: number, index: number, above: boolean}[]} */
  const found = [];
  view.lines.forEach(({ values, scale, faint }, line) => {
    if (faint) return;
    const { min, max } = plot.scales[scale] ?? {};
    for (let index = first ?? 0; index <= (last ?? -1); index += 1) {
      const value = values[index];
      if (typeof value !== "number" || min === undefined || max === undefined) continue;
      if (value < min || value > max) found.push({ line, index, above: value > max });
    }
  });
  return found;
}

/** A triangle at the edge for each. @param {Plot} plot @param {import("./chart.js").View} view */
export function paintOutside(plot, view) {
  if (view.y === "all") return;
  const { ctx, bbox } = plot;
  const half = HALF_PX * devicePixelRatio;
  ctx.save();
  for (const { line, index, above } of pointsOutside(plot, view)) {
    const x = plot.valToPos(view.xs[index] ?? 0, "x", true);
    const [tip, way] = above ? [bbox.top, 1] : [bbox.top + bbox.height, -1];
    ctx.fillStyle = seriesColor(view.lines[line]?.color ?? 0);
    ctx.beginPath();
    ctx.moveTo(x, tip);
    ctx.lineTo(x - half, tip + way * 1.6 * half);
    ctx.lineTo(x + half, tip + way * 1.6 * half);
    ctx.fill();
  }
  ctx.restore();
}
