// @ts-check
/**
 * Two sides of a comparison, series by series. Nothing here touches the page.
 *
 * The interval of a ratio is put together from the intervals of its two values on the logarithmic scale (MOVER: Zou and
 * Donner 2008, Statistics in Medicine 27, 1693-1702), neither taken as smaller than the scatter from night to night
 * makes it: 1.96 * noise / sqrt(nights). A change is real where that interval leaves out 1 and the ratio is further
 * from 1 than 3 * noise * sqrt(1/nights of A + 1/nights of B).
 */

import { median } from "./points.js";

/**
 * @typedef {{kind: "night" | "tvm" | "machine", value: string}} Side a night by its stamp, a TVM version, a machine
 * @typedef {{stamp: string, value: number, low: number, high: number, code: number | null}} Point of one night
 * @typedef {{value: number, low: number, high: number, nights: number, code: number | null, stamp: string}} Summary
 *   of one side of one series: its value or the median of its nights, between `low` and `high`, which are the value
 *   itself where no interval is known
 * @typedef {{ratio: number, low: number, high: number, real: boolean | null}} Change
 *   `low` and `high` are NaN, `real` is null where nobody knows how much the series scatters
 */

export const REAL_SCALES = 3;
const NORMAL_95 = 1.96;

/**
 * "tvm:0.27.0", "machine:m1", "night:20261121T031500Z" or a bare stamp as a side; null where it is empty.
 *
 * @param {string | undefined} text
 * @returns {Side | null}
 */
export function parseSide(text) {
  if (!text) return null;
  const found = /^(night|tvm|machine):(.*)$/s.exec(text);
  const kind = /** @type {Side["kind"]} */ (found?.[1] ?? "night");
  return { kind, value: found?.[2] ?? text };
}

/** @param {Side} side */
export function formatSide(side) {
  return side.kind === "night" ? side.value : `${side.kind}:${side.value}`;
}

/**
 * What its nights say of one side of a series; null where it has none.
 *
 * @param {readonly Point[]} points oldest first
 * @returns {Summary | null}
 */
export function summarise(points) {
  const [first] = points;
  const last = points[points.length - 1];
  if (!first || !last) return null;
  const codes = new Set(points.map((point) => point.code));
  const rest = { nights: points.length, code: codes.size === 1 ? first.code : null, stamp: last.stamp };
  if (points.length === 1) return { value: first.value, low: first.low, high: first.high, ...rest };
  const values = points.map((point) => point.value).sort((a, b) => a - b);
  const [low, high] = medianInterval(values);
  return { value: median(values) ?? NaN, low, high, ...rest };
}

/**
 * Whether data of the TVM `name` (its commit, or an exact version) is meant by `value`: the same text, or as a night's
 * record writes it, "0.27.0, commit 7b5acb32b".
 *
 * @param {string} value
 * @param {string} name
 */
export function isVersion(value, name) {
  const commit = /, commit (\S+)$/.exec(value)?.[1];
  return name === value || (commit !== undefined && name.startsWith(commit));
}

/**
 * A 95 % interval of the median of ascending `values`, free of any distribution: the k-th smallest and largest, k from
 * the binomial distribution. Of five or fewer values the smallest and the largest, which is less than 95 %.
 *
 * @param {readonly number[]} values
 * @returns {[number, number]}
 */
export function medianInterval(values) {
  const count = values.length;
  let [rank, tail, term] = [0, 0, 0.5 ** Math.min(count, 1000)];
  if (count > 1000) rank = Math.floor(count / 2 - 0.98 * Math.sqrt(count));
  else {
    for (let index = 0; index < count / 2; index += 1) {
      tail += term;
      if (tail > 0.025) break;
      rank = index + 1;
      term *= (count - index) / (index + 1);
    }
  }
  const from = Math.max(0, rank - 1);
  return [values[from] ?? NaN, values[count - 1 - from] ?? NaN];
}

/**
 * B over A; null where a ratio says nothing (a value that is not positive).
 *
 * @param {Summary} a
 * @param {Summary} b
 * @param {number | null} noise
 * @returns {Change | null}
 */
export function compare(a, b, noise) {
  if (!(a.value > 0 && b.value > 0)) return null;
  const log = Math.log(b.value / a.value);
  const ratio = b.value / a.value;
  if (noise === null) return { ratio, low: NaN, high: NaN, real: ratio === 1 ? false : null };
  const least = (/** @type {Summary} */ side) => (NORMAL_95 * noise) / Math.sqrt(side.nights);
  const down = Math.hypot(reach(b.value, b.low, least(b)), reach(a.high, a.value, least(a)));
  const up = Math.hypot(reach(b.high, b.value, least(b)), reach(a.value, a.low, least(a)));
  const [low, high] = [Math.exp(log - down), Math.exp(log + up)];
  const beyond = Math.abs(log) > REAL_SCALES * noise * Math.sqrt(1 / a.nights + 1 / b.nights);
  return { ratio, low, high, real: beyond && (low > 1 || high < 1) };
}

/**
 * The logarithm of high over low, at least `least`.
 *
 * @param {number} high
 * @param {number} low
 * @param {number} least
 */
function reach(high, low, least) {
  return high > low && low > 0 ? Math.max(least, Math.log(high / low)) : least;
}

/**
 * The geometric mean of ratios with its interval (NaN where one of theirs is), their errors taken as independent;
 * null of none.
 *
 * @param {readonly {ratio: number, low: number, high: number}[]} changes
 * @returns {{ratio: number, low: number, high: number, count: number} | null}
 */
export function geometricMean(changes) {
  const count = changes.length;
  if (!count) return null;
  const mean = changes.reduce((sum, one) => sum + Math.log(one.ratio), 0) / count;
  const down = Math.sqrt(changes.reduce((sum, one) => sum + Math.log(one.ratio / one.low) ** 2, 0)) / count;
  const up = Math.sqrt(changes.reduce((sum, one) => sum + Math.log(one.high / one.ratio) ** 2, 0)) / count;
  return { ratio: Math.exp(mean), low: Math.exp(mean - down), high: Math.exp(mean + up), count };
}

/**
 * How much worse: above 1 is worse, whichever direction is better for the metric; 1 where none is.
 *
 * @param {number} ratio
 * @param {"lower" | "higher" | "none"} direction
 */
export function worsening(ratio, direction) {
  return direction === "none" ? 1 : direction === "lower" ? ratio : 1 / ratio;
}
