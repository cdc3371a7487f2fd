// @ts-check
/** Series as numbers to draw: values on an axis, baselines, levels between steps. Nothing here touches the page. */

import { seconds } from "./format.js";

/** @typedef {import("./data.js").Shard} Shard */
/** @typedef {number | null | undefined} Value a value; null breaks the line; undefined is no night of that series */
export const GAP_S = 8 * 86400;
export const BASELINE_NIGHTS = 10;
/** A band of 2 noise scales holds 95 of 100 nights where nothing changes. */
export const BAND_SCALES = 2;

/**
 * The middle of `values`; null where there are none.
 *
 * @param {readonly number[]} values
 */
export function median(values) {
  if (!values.length) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  const [high = 0, low = 0] = [sorted[half], sorted[half - 1]];
  return sorted.length % 2 ? high : (low + high) / 2;
}

/**
 * The seconds since 1970 of each night in a shard.
 *
 * @param {Shard} shard
 */
export function timesOf(shard) {
  const known = times.get(shard);
  if (known) return known;
  const made = shard.stamp.map(seconds);
  times.set(shard, made);
  return made;
}

/** @type {WeakMap<Shard, number[]>} */
const times = new WeakMap();

/**
 * The baseline of a view: the median of the first ten nights from `from` on (seconds); null where there is no value.
 *
 * @param {Shard} shard
 * @param {number} from
 * @param {number} [to]
 */
export function baseline(shard, from, to = Infinity) {
  const at = timesOf(shard);
  /** @type {number[]} */
  const first = [];
  for (let index = lowerBound(at, from); index < at.length && first.length < BASELINE_NIGHTS; index += 1) {
    const value = shard.value[index];
    if ((at[index] ?? 0) > to) break;
    if (value !== null && value !== undefined) first.push(value);
  }
  return median(first);
}

/**
 * The first place in the ascending `sorted` that is not below `value`.
 *
 * @param {ArrayLike<number>} sorted
 * @param {number} value
 */
export function lowerBound(sorted, value) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? 0) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * A shard's values at the places of an axis, each divided by `divisor`.
 *
 * @param {Shard} shard
 * @param {import("./chart/axis.js").Axis} axis
 * @param {number} [divisor]
 * @returns {{values: Value[], places: number[]}}
 */
export function onAxis(shard, axis, divisor = 1) {
  const at = timesOf(shard);
  /** @type {Value[]} */
  const values = new Array(axis.xs.length).fill(undefined);
  /** @type {number[]} */
  const places = new Array(axis.xs.length).fill(-1);
  let before = -1;
  axis.placesOf(shard).forEach((place, index) => {
    if (axis.breaks && index && (at[index] ?? 0) - (at[index - 1] ?? 0) > GAP_S)
      for (let between = before + 1; between < place; between += 1) values[between] = null;
    const value = shard.value[index];
    values[place] = value === null || value === undefined ? undefined : value / divisor;
    places[place] = index;
    before = place;
  });
  return { values, places };
}

/** @typedef {{from: number, to: number, level: number}} Level of a stretch, in seconds and the shard's unit */
/** @type {WeakMap<Shard, Level[]>} */
const levelsOf = new WeakMap();

/**
 * Stretches of the shard between its steps with their median.
 *
 * @param {Shard} shard
 */
export function levels(shard) {
  const known = levelsOf.get(shard) ?? findLevels(shard);
  levelsOf.set(shard, known);
  return known;
}

/** @param {Shard} shard */
function findLevels(shard) {
  const at = timesOf(shard);
  const starts = shard.steps
    .map((step) => seconds(step.stamp))
    .filter(Number.isFinite)
    .sort((a, b) => a - b);
  const cuts = [...new Set([0, ...starts.map((time) => lowerBound(at, time)), at.length])].sort((a, b) => a - b);
  /** @type {Level[]} */
  const found = [];
  for (let index = 0; index + 1 < cuts.length; index += 1) {
    const [first = 0, end = 0] = [cuts[index], cuts[index + 1]];
    const values = shard.value.slice(first, end).filter((value) => value !== null);
    const level = median(/** @type {number[]} */ (values));
    const [from, to] = [at[first], at[Math.min(end, at.length - 1)]];
    if (level !== null && from !== undefined && to !== undefined) found.push({ from, to, level });
  }
  return found;
}

/**
 * The ratio of the value at `index` to the last one before it; null where there is none.
 *
 * @param {Shard} shard
 * @param {number} index
 */
export function fromPrevious(shard, index) {
  const value = shard.value[index];
  for (let before = index - 1; before >= 0; before -= 1) {
    const old = shard.value[before];
    if (old !== null && old !== undefined)
      return value === null || value === undefined || old === 0 ? null : value / old;
  }
  return null;
}

/**
 * @typedef {{kind: "tvm" | "machine" | "annotation" | "incident", time: number, end: number | null, words: string,
 *   way?: "worse" | "better" | "changed"}} Mark
 */

/**
 * What happened to these series, oldest first: other TVM versions, other machines, annotations, incidents; each once.
 *
 * @param {readonly Shard[]} shards
 * @returns {Mark[]}
 */
export function marks(shards) {
  /** @type {Map<string, Mark>} */
  const found = new Map();
  const add = (/** @type {Mark} */ mark) => {
    if (Number.isFinite(mark.time)) found.set(`${mark.kind} ${mark.time} ${mark.words}`, mark);
  };
  for (const shard of shards) {
    const at = timesOf(shard);
    changes(shard.tvm, shard.tvms).forEach(([index, words]) =>
      add({ kind: "tvm", time: at[index] ?? NaN, end: null, words }),
    );
    changes(shard.machine, shard.machines).forEach(([index, words, old]) =>
      add({ kind: "machine", time: at[index] ?? NaN, end: null, words: whatIsNew(old, words) }),
    );
    for (const one of shard.annotations) {
      add({ kind: "annotation", time: seconds(one.stamp), end: null, words: `${one.kind}: ${one.words}` });
    }
    for (const one of shard.incidents) {
      const end = one.end ? seconds(one.end) : null;
      add({ kind: "incident", time: seconds(one.begin), end, words: one.headline, way: one.way });
    }
  }
  return [...found.values()].sort((a, b) => a.time - b.time);
}

/**
 * Where the column takes another value than before, which, and which it had; not its beginning.
 *
 * @param {readonly (number | null)[]} column
 * @param {readonly string[]} names
 * @returns {[number, string, string][]}
 */
function changes(column, names) {
  /** @type {[number, string, string][]} */
  const found = [];
  /** @type {number | null} */
  let last = null;
  column.forEach((value, index) => {
    if (value === null || value === undefined) return;
    if (last !== null && value !== last) found.push([index, names[value] || "unknown", names[last] ?? ""]);
    last = value;
  });
  return found;
}

/**
 * The parts of a machine's description that the old one does not have, or all of it where none is the same.
 *
 * @param {string} old
 * @param {string} now
 */
export function whatIsNew(old, now) {
  const known = new Set(old.split(", "));
  return (
    now
      .split(", ")
      .filter((part) => !known.has(part))
      .join(", ") || now
  );
}
