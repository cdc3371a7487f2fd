// @ts-check
/** Where nights stand on the x axis: by their date here, one beside the other in ordinal.js. Touches no page. */

import { GAP_S, lowerBound, timesOf } from "../points.js";

/** @typedef {import("../data.js").Shard} Shard */
/** @typedef {[number, number]} Range from where to where: seconds since 1970, or positions on an axis */
/**
 * @typedef {{
 *   kind: "date" | "night" | "commit", xs: number[], ends: Range, whole: Range, breaks: boolean,
 *   placesOf: (shard: Shard) => number[], positionOf: (time: number) => number,
 *   rangeOf: (period: Range) => Range, periodOf: (range: Range) => Range,
 *   labels: string[] | null, drawn: ((small: boolean) => import("../plot.js").PlotAxis) | null,
 * }} Axis
 *   `xs` are the positions of its places, ascending; `ends` the first and the last night; `whole` has some room around
 *   all of them. `placesOf` gives the place of each point of a shard. A line `breaks` where a week is missing. `labels`
 *   are those of its whole positions and `drawn` is how it looks, both null for dates
 */

const DAY_S = 86400;

/**
 * Nights as far apart as they were, with a place inside each gap of any series, where its line is to break.
 *
 * @param {readonly Shard[]} shards
 * @returns {Axis}
 */
export function dateAxis(shards) {
  /** @type {Set<number>} */
  const all = new Set();
  for (const shard of shards) {
    const at = timesOf(shard);
    for (let index = 0; index < at.length; index += 1) {
      const [time, next] = [at[index] ?? 0, at[index + 1]];
      all.add(time);
      if (next !== undefined && next - time > GAP_S) all.add(Math.round((time + next) / 2));
    }
  }
  const xs = [...all].sort((a, b) => a - b);
  const same = (/** @type {Range} */ range) => range;
  return {
    kind: "date",
    xs,
    ends: [xs[0] ?? 0, xs[xs.length - 1] ?? DAY_S],
    whole: wholeRange(xs),
    breaks: true,
    placesOf: (shard) => placesIn(xs, timesOf(shard)),
    positionOf: (time) => time,
    rangeOf: (period) => (period[0] < period[1] ? period : wholeRange(period)),
    periodOf: same,
    labels: null,
    drawn: null,
  };
}

/** @param {readonly number[]} xs @param {readonly number[]} times some of them, ascending */
function placesIn(xs, times) {
  let place = 0;
  return times.map((time) => {
    while ((xs[place] ?? Infinity) < time) place += 1;
    return place;
  });
}

/**
 * All nights with some room on both sides; around a single one, some days.
 *
 * @param {readonly number[]} xs
 * @returns {Range}
 */
export function wholeRange(xs) {
  const [first = 0, last = DAY_S] = [xs[0], xs[xs.length - 1]];
  const pad = first === last ? 3 * DAY_S : Math.max((last - first) * 0.01, DAY_S / 2);
  return [first - pad, last + pad];
}

/**
 * The first place in view, and the one behind the last.
 *
 * @param {{xs: readonly number[], range: Range}} view
 * @returns {Range}
 */
export function placesInView({ xs, range }) {
  return [lowerBound(xs, range[0]), lowerBound(xs, range[1] + 1e-4)];
}
