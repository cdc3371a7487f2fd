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

/** @typedef {import("./data.js").Shard} Shard */
/**
 * @typedef {{kind: "night" | "tvm" | "machine", value: string}} Side a night by its stamp, a TVM version, a machine
 * @typedef {{value: number, low: number, high: number, nights: number, code: number | null, stamp: string}} Summary
 *   of one side of one series: its value or the median of its nights, between `low` and `high`, which are the value
 *   itself where no interval is known
 * @typedef {{ratio: number, low: number, high: number, real: boolean | null}} Change
 *   `low` and `high` are NaN, `real` is null where nobody knows how much the series scatters
 */

export const REAL_SCALES = 3;
const NORMAL_95 = 1.96;
const FEWEST_FOR_NOISE = 10;
const NIGHTS_FOR_NOISE = 60;

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
 * What a side says of a series; null where it has no value there.
 *
 * @param {Shard} shard
 * @param {Side} side
 * @returns {Summary | null}
 */
export function summarise(shard, side) {
  const places = placesOf(shard, side).filter((index) => shard.value[index] !== null);
  const [first] = places;
  if (first === undefined) return null;
  const last = places[places.length - 1] ?? first;
  const codes = new Set(places.map((index) => shard.code[index] ?? null));
  const code = codes.size === 1 ? ([...codes][0] ?? null) : null;
  const rest = { nights: places.length, code, stamp: shard.stamp[last] ?? "" };
  if (places.length === 1) {
    const value = shard.value[first] ?? NaN;
    return { value, low: shard.low[first] ?? value, high: shard.high[first] ?? value, ...rest };
  }
  const values = places.map((index) => shard.value[index] ?? NaN).sort((a, b) => a - b);
  const [low, high] = medianInterval(values);
  return { value: median(values) ?? NaN, low, high, ...rest };
}

/** @param {Shard} shard @param {Side} side */
function placesOf(shard, side) {
  if (side.kind === "night") {
    const at = shard.stamp.indexOf(side.value);
    return at < 0 ? [] : [at];
  }
  const [column, names] = side.kind === "tvm" ? [shard.tvm, shard.tvms] : [shard.machine, shard.machines];
  const wanted = side.kind === "tvm" ? placeOfVersion(names, side.value) : names.indexOf(side.value);
  return wanted < 0 ? [] : column.flatMap((value, index) => (value === wanted ? [index] : []));
}

/**
 * Where a TVM stands among `names`, which are as its data says (its commit): named just so, or as a night's record does,
 * "0.27.0, commit 7b5acb32b".
 *
 * @param {readonly string[]} names
 * @param {string} value
 */
function placeOfVersion(names, value) {
  const commit = /, commit (\S+)$/.exec(value)?.[1];
  return names.findIndex((name) => name === value || (commit !== undefined && name.startsWith(commit)));
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
 * How much the nights of a series scatter, as a share of its value: what the alerts found, else the median step from
 * night to night over the last 60, scaled to a standard deviation; null where there are fewer than 10.
 *
 * @param {Shard} shard
 */
export function noiseOf(shard) {
  if (shard.noise !== null && shard.noise !== undefined) return shard.noise;
  const values = shard.value.filter((value) => value !== null && value > 0).slice(-NIGHTS_FOR_NOISE);
  if (values.length < FEWEST_FOR_NOISE) return null;
  const steps = values.slice(1).map((value, index) => Math.abs(Math.log((value ?? 1) / (values[index] ?? 1))));
  return (1.4826 * (median(steps) ?? 0)) / Math.SQRT2;
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
