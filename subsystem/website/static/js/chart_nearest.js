// @ts-check
/** Which point of a chart is meant. Nothing here touches the page. */

/** @typedef {import("./chart.js").View} View */
/** @typedef {import("./chart.js").Place} Place */
/** @typedef {import("./chart.js").ChartLine} ChartLine */

/**
 * The point nearest to a place in the plot: of each line the night nearest in time, of these the nearest in height.
 *
 * @param {import("./plot.js").Plot} plot
 * @param {View} view
 * @param {number} left
 * @param {number} top
 * @returns {Place | null}
 */
export function nearest(plot, view, left, top) {
  const around = plot.posToIdx(left);
  /** @type {Place | null} */
  let best = null;
  let least = Infinity;
  view.lines.forEach((line, place) => {
    const index = nearestNight(line, around);
    const value = index === null ? null : line.values[index];
    if (index === null || typeof value !== "number") return;
    const x = plot.valToPos(view.xs[index] ?? 0, "x");
    const distance = Math.abs(plot.valToPos(value, line.scale) - top) + 2 * Math.max(0, Math.abs(x - left) - 6);
    if (distance < least) [least, best] = [distance, { line: place, index }];
  });
  return best;
}

/**
 * The place with a value of this line that is nearest to `around`; null where there is none.
 *
 * @param {ChartLine} line
 * @param {number} around
 */
export function nearestNight(line, around) {
  for (let away = 0; away < line.places.length; away += 1) {
    for (const index of [around - away, around + away]) {
      if ((line.places[index] ?? -1) >= 0 && typeof line.values[index] === "number") return index;
    }
  }
  return null;
}
