// @ts-check
/** From the state in the address and the shards to what the chart shows; nothing here touches the page. */

import { seconds } from "../format.js";
import { axis, baseline, lowerBound, marks, onAxis, timesOf } from "../points.js";

/** @typedef {import("../data.js").Entry} Entry */
/** @typedef {import("../data.js").Shard} Shard */
/** @typedef {import("../state.js").State} State */
/** @typedef {import("../chart/chart.js").View} View */
/** @typedef {import("../points.js").Mark} Mark */

export const KINDS = /** @type {const} */ (["tvm", "machine", "annotation", "incident"]);
const DAY_S = 86400;
export const MOST_CHARTED = 50;
const MOST_UNITS = 2;

/**
 * The time range that the state asks for, within what there is; a day of `to` counts whole.
 *
 * @param {State} state
 * @param {readonly number[]} xs
 * @returns {[number, number]}
 */
export function rangeOf(state, xs) {
  const [begin, end] = wholeRange(xs);
  let from = seconds(state["from"] ?? "");
  let to = seconds(state["to"] ?? "");
  if (/^\d{4}-\d\d-\d\d$/.test(state["to"] ?? "")) to += DAY_S - 1;
  if (!Number.isFinite(from)) from = begin;
  if (!Number.isFinite(to)) to = end;
  return from < to ? [from, to] : [begin, end];
}

/**
 * All nights with some room on both sides; around a single one, some days.
 *
 * @param {readonly number[]} xs
 * @returns {[number, number]}
 */
export function wholeRange(xs) {
  const [first = 0, last = DAY_S] = [xs[0], xs[xs.length - 1]];
  const pad = first === last ? 3 * DAY_S : Math.max((last - first) * 0.01, DAY_S / 2);
  return [first - pad, last + pad];
}

/**
 * Whether the state looks at nights before `boundary`, where the shards of past years begin to matter.
 *
 * @param {State} state
 * @param {number} boundary
 */
export function needsPast(state, boundary) {
  return state["from"] === "all" || seconds(state["from"] ?? "") < boundary || seconds(state["to"] ?? "") < boundary;
}

/**
 * 1 January of the year before that of the night, where recent shards begin.
 *
 * @param {string} night
 */
export function recentBoundary(night) {
  return Date.UTC(Number(night.slice(0, 4)) - 1, 0, 1) / 1e3;
}

/**
 * The kinds of marks that are drawn: all, but for those that the state leaves out.
 *
 * @param {State} state
 * @returns {Set<string>}
 */
export function kindsOf(state) {
  const hidden = new Set((state["hide"] ?? "").split(","));
  return new Set(KINDS.filter((kind) => !hidden.has(kind)));
}

/** @type {{key: Shard[], xs: number[], marks: Mark[], lines: Map<string, {values: any[], places: number[]}>} | null} */
let last = null;

/**
 * @param {State} state
 * @param {{entry: Entry, shard: Shard}[]} series
 * @returns {View}
 */
export function makeView(state, series) {
  const shards = series.map((one) => one.shard);
  const held =
    last && last.key.length === shards.length && last.key.every((shard, at) => shard === shards[at])
      ? last
      : { key: shards, xs: axis(shards), marks: marks(shards), lines: new Map() };
  last = held;
  const range = rangeOf(state, held.xs);
  const units = new Set(shards.map((shard) => shard.unit));
  const relative = state["relative"] === "1" || units.size > MOST_UNITS;
  const log = state["scale"] === "log";
  const lines = series.map(({ entry, shard }) => {
    const base = baseline(shard, firstShown(shard, range[0]), range[1]);
    const divisor = relative && base ? base : 1;
    const key = `${entry.id} ${divisor}`;
    const drawn = held.lines.get(key) ?? onAxis(shard, held.xs, divisor);
    held.lines.set(key, drawn);
    const values = log ? positive(held, key, drawn.values) : drawn.values;
    const scale = relative ? "ratio" : shard.unit || "number";
    return { entry, shard, values, places: drawn.places, divisor, baseline: base, scale };
  });
  return {
    lines,
    xs: held.xs,
    log,
    relative,
    band: state["band"] !== "0",
    kinds: kindsOf(state),
    marks: held.marks,
    range,
  };
}

/** The first night in view, so that a baseline does not hang on where between two nights the view begins.
 *
 * @param {Shard} shard
 * @param {number} from
 */
function firstShown(shard, from) {
  const at = timesOf(shard);
  return at[lowerBound(at, from)] ?? from;
}

/**
 * Without what a logarithm cannot show.
 *
 * @param {NonNullable<typeof last>} held
 * @param {string} key
 * @param {any[]} values
 */
function positive(held, key, values) {
  const known = held.lines.get(`log ${key}`);
  if (known) return known.values;
  const kept = values.map((value) => (typeof value === "number" && value <= 0 ? undefined : value));
  held.lines.set(`log ${key}`, { values: kept, places: [] });
  return kept;
}
