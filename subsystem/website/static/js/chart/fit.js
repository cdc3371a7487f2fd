// @ts-check
/** How high a chart has to be. Touches no page. */

import { BAND_SCALES, levels, median } from "../points.js";

/** @typedef {import("./chart.js").View} View */
/** @typedef {import("./chart.js").ChartLine} ChartLine */
/** @typedef {[number, number]} Extent the lowest and the highest value */

/** Points are left out where they would take more than half of the height. */
const MOST_TALLER = 2;
const SPREADS = 4;
/** So many times the usual scatter is more than may set the scale of the others. */
const NOISY = 3;
const MAD_TO_SD = 1.4826;
const WINDOW = 9;
/** More values of a line than these are not looked at one by one. */
const LOOKED_AT = 120;

/**
 * The lowest and highest value that a scale has to show of the places from `first` to `last`; null where nothing is.
 *
 * @param {View} view
 * @param {string} scale
 * @param {number} first
 * @param {number} last
 * @returns {Extent | null}
 */
export function fit(view, scale, first, last) {
  const lines = view.lines.flatMap((line) => {
    const values = line.scale === scale ? valuesIn(line, first, last) : [];
    return values.length ? [{ line, values }] : [];
  });
  const all = around(lines.map(({ values }) => extentOf(values)));
  if (!all || view.y === "all") return all;
  const period = /** @type {Extent} */ ([view.xs[first] ?? 0, view.xs[last] ?? 0]);
  const noise = middleOf(lines.map(({ line }) => line.shard.noise ?? 0));
  if (view.y === "steps")
    return around(lines.flatMap(({ line }) => levelsIn(view, line, period, BAND_SCALES * noise))) ?? all;
  const usual = usualExtent(view, lines.filter(({ line }) => !line.faint), period);
  return usual && height(all, view.log) > MOST_TALLER * height(usual, view.log) ? usual : all;
}

/** @param {ChartLine} line @param {number} first @param {number} last */
function valuesIn(line, first, last) {
  return /** @type {number[]} */ (line.values.slice(first, last + 1).filter((value) => typeof value === "number"));
}

/** @param {readonly number[]} values @returns {Extent} */
function extentOf(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

/** @param {readonly Extent[]} extents @returns {Extent | null} */
function around(extents) {
  return extents.length ? extentOf(extents.flat()) : null;
}

/** @param {Extent} extent @param {boolean} log */
function height([low, high], log) {
  return log ? Math.log(high / low) : high - low;
}

/**
 * The middle one, the lower where there are two.
 *
 * @param {readonly number[]} values
 */
function middleOf(values) {
  return [...values].sort((a, b) => a - b)[(values.length - 1) >> 1] ?? 0;
}

/**
 * A line's levels between its steps, with a fraction around them.
 *
 * @param {View} view
 * @param {ChartLine} line
 * @param {Extent} period on the axis
 * @param {number} reach
 * @returns {Extent[]}
 */
function levelsIn(view, line, [first, last], reach) {
  return levels(line.shard).flatMap(({ from, to, level }) => {
    const inView = view.axis.positionOf(from) <= last && view.axis.positionOf(to) >= first;
    const shown = level / line.divisor;
    return inView && (shown > 0 || !view.log) ? [widened([shown, shown], reach, view.log)] : [];
  });
}

/** @param {Extent} extent @param {number} reach a fraction @param {boolean} log @returns {Extent} */
function widened([low, high], reach, log) {
  if (log) return [low / (1 + reach), high * (1 + reach)];
  return [low - Math.abs(low) * reach, high + Math.abs(high) * reach];
}

/**
 * What all lines take without single nights far out. The last value of each is in it, for that is the one people come
 * for. Of a line that scatters far more than is usual among them, only its levels are.
 *
 * @param {View} view
 * @param {{line: ChartLine, values: number[]}[]} lines
 * @param {Extent} period
 */
function usualExtent(view, lines, period) {
  const courses = lines.map(({ line, values }) => ({ line, values, ...courseOf(values) }));
  const usual = middleOf(courses.map((course) => course.scatter));
  return around(
    courses.flatMap(({ line, values, course, scatter }) => {
      if (!scatter) return [extentOf(values)]; // exact numbers have no outliers
      if (usual && scatter > NOISY * usual) return levelsIn(view, line, period, SPREADS * usual);
      const [low, high] = widened(course, SPREADS * scatter, view.log);
      return [extentOf(values.filter((value, at) => (value >= low && value <= high) || at === values.length - 1))];
    }),
  );
}

/**
 * Between what a line runs (medians of nine neighbours), and how far its values are off that, as a fraction.
 *
 * @param {readonly number[]} values
 */
function courseOf(values) {
  const step = Math.max(1, Math.ceil(values.length / LOOKED_AT));
  const middles = [];
  const off = [];
  for (let at = 0; at < values.length; at += step) {
    const near = Array.from({ length: WINDOW }, (_one, place) => values[at + step * (place - (WINDOW >> 1))]);
    const middle = median(/** @type {number[]} */ (near.filter((value) => value !== undefined))) ?? NaN;
    middles.push(middle);
    off.push(middle ? Math.abs((values[at] ?? NaN) / middle - 1) : 0);
  }
  return { course: extentOf(middles), scatter: MAD_TO_SD * (median(off) ?? 0) };
}
