// @ts-check
/** x axes on which nights, or commits, stand one beside the other, however far apart they were. Touches no page. */

import { dateAxis } from "./axis.js";
import { day, stampOf } from "../format.js";
import { lowerBound, timesOf } from "../points.js";

/** @typedef {import("../data.js").Shard} Shard */
/** @typedef {import("./axis.js").Axis} Axis */
/** @typedef {import("./axis.js").Range} Range */
/** @typedef {{x: number, time: number}} Place */
/** @typedef {Axis & {labels: string[]}} OrdinalAxis one label a position */

/** Of a commit's room what its nights take, so that they stand together and apart from the next one's. */
const TOGETHER = 0.7;
const COMMIT_DIGITS = 9;

/**
 * One position a night.
 *
 * @param {readonly Shard[]} shards
 * @returns {OrdinalAxis}
 */
export function nightAxis(shards) {
  const dates = dateAxis(shards);
  const nights = new Set(shards.flatMap(timesOf));
  /** @type {string[]} */
  const labels = [];
  let year = "";
  const places = dates.xs.map((time) => {
    if (!nights.has(time)) return { x: labels.length - 0.5, time }; // where a line breaks
    const now = day(stampOf(time)).slice(0, 4);
    labels.push(day(stampOf(time)).slice(now === year ? 5 : 0));
    year = now;
    return { x: labels.length - 1, time };
  });
  return { ...dates, ...ordinal(places, labels), kind: "night" };
}

/**
 * One position a commit (or exact version), in the order of their first nights, where all nights of it stand together.
 *
 * @param {readonly Shard[]} shards
 * @returns {OrdinalAxis}
 */
export function commitAxis(shards) {
  /** @type {Map<string, Set<number>>} */
  const nights = new Map();
  for (const shard of shards) {
    const at = timesOf(shard);
    at.forEach((time, index) => {
      const name = commitAt(shard, index);
      nights.set(name, (nights.get(name) ?? new Set()).add(time));
    });
  }
  const commits = [...nights].map(([name, times]) => ({ name, times: [...times].sort((a, b) => a - b) }));
  commits.sort((a, b) => (a.times[0] ?? 0) - (b.times[0] ?? 0) || (a.name < b.name ? -1 : 1));
  /** @type {Map<string, number>} */
  const placeOf = new Map();
  /** @type {Place[]} */
  const places = [];
  commits.forEach(({ name, times }, slot) =>
    times.forEach((time, index) => {
      placeOf.set(`${time} ${name}`, places.length);
      places.push({ x: slot + ((index + 0.5) / times.length - 0.5) * TOGETHER, time });
    }),
  );
  const labels = commits.map(({ name, times }) => shortened(name) + (times.length > 1 ? ` \u00d7${times.length}` : ""));
  return {
    ...dateAxis(shards),
    ...ordinal(places, labels),
    kind: "commit",
    breaks: false,
    placesOf: (shard) =>
      timesOf(shard).map((time, index) => placeOf.get(`${time} ${commitAt(shard, index)}`) ?? 0),
  };
}

/**
 * What was measured at a point: a commit, or an exact version; empty where nobody knows.
 *
 * @param {Shard} shard
 * @param {number} index
 */
export function commitAt(shard, index) {
  return shard.tvms[shard.tvm[index] ?? -1] ?? "";
}

/** @param {string} name */
function shortened(name) {
  return /^[0-9a-f]{12,}$/.test(name) ? name.slice(0, COMMIT_DIGITS) : name || "unknown";
}

/**
 * @param {Place[]} places
 * @param {string[]} labels one a position
 */
function ordinal(places, labels) {
  const byTime = [...places].sort((a, b) => a.time - b.time || a.x - b.x);
  const times = byTime.map((place) => place.time);
  const whole = /** @type {Range} */ ([-0.5, labels.length - 0.5]);
  return {
    labels,
    xs: places.map((place) => place.x),
    whole,
    positionOf: (/** @type {number} */ time) => byTime[lowerBound(times, time)]?.x ?? whole[1],
    rangeOf: (/** @type {Range} */ [from, to]) => {
      const inside = byTime.slice(lowerBound(times, from), lowerBound(times, to + 1)).map((place) => Math.round(place.x));
      return /** @type {Range} */ (inside.length ? [Math.min(...inside) - 0.5, Math.max(...inside) + 0.5] : whole);
    },
    periodOf: (/** @type {Range} */ [from, to]) => {
      const inside = byTime.filter((place) => place.x >= from && place.x <= to);
      const near = inside.length ? inside : byTime.slice(-1);
      return /** @type {Range} */ ([near[0]?.time ?? 0, near[near.length - 1]?.time ?? 0]);
    },
  };
}
