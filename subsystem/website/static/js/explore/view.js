// @ts-check
/** From the state in the address and the shards to what the chart shows; nothing here touches the page. */

import { dateAxis, wholeRange } from "../chart/axis.js";
import { seconds, stampOf } from "../format.js";
import { baseline, lowerBound, marks, onAxis, timesOf } from "../points.js";

/** @typedef {import("../data.js").Entry} Entry */
/** @typedef {import("../data.js").Shard} Shard */
/** @typedef {import("../state.js").State} State */
/** @typedef {import("../chart/chart.js").View} View */
/** @typedef {import("../points.js").Mark} Mark */
/** @typedef {import("../chart/axis.js").Axis} Axis */
/** @typedef {import("../chart/axis.js").Range} Range */

export const KINDS = /** @type {const} */ (["tvm", "machine", "annotation", "incident"]);
const DAY_S = 86400;
export const MOST_CHARTED = 50;
const MOST_UNITS = 2;

/**
 * The period that the state asks for, within what there is; a day of `to` counts whole.
 *
 * @param {State} state
 * @param {Range} whole
 * @returns {Range}
 */
export function periodOf(state, [begin, end]) {
  let from = seconds(state["from"] ?? "");
  let to = seconds(state["to"] ?? "");
  if (/^\d{4}-\d\d-\d\d$/.test(state["to"] ?? "")) to += DAY_S - 1;
  if (!Number.isFinite(from)) from = begin;
  if (!Number.isFinite(to)) to = end;
  return from <= to ? [from, to] : [begin, end];
}

/**
 * What the address says of a part of a view's axis.
 *
 * @param {View} view
 * @param {Range} range
 */
export function stateOf(view, range) {
  const [from, to] = view.axis.periodOf(range);
  return { from: stampOf(from), to: stampOf(to) };
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

/**
 * @type {{key: Shard[], axisOf: typeof dateAxis, axis: Axis, marks: Mark[],
 *   lines: Map<string, {values: any[], places: number[]}>} | null}
 */
let last = null;

/**
 * @param {State} state
 * @param {{entry: Entry, shard: Shard}[]} series
 * @param {typeof dateAxis} [axisOf]
 * @returns {View}
 */
export function makeView(state, series, axisOf = dateAxis) {
  const shards = series.map((one) => one.shard);
  const held =
    last?.axisOf === axisOf && last.key.length === shards.length && last.key.every((shard, at) => shard === shards[at])
      ? last
      : { key: shards, axisOf, axis: axisOf(shards), marks: marks(shards), lines: new Map() };
  last = held;
  const period = periodOf(state, wholeRange(held.axis.ends));
  const units = new Set(shards.map((shard) => shard.unit));
  const group = state["group"] ?? "";
  const relative = state["relative"] === "1" || group !== "" || units.size > MOST_UNITS;
  const log = state["scale"] === "log";
  const lines = series.map(({ entry, shard }, color) => {
    const base = baseline(shard, firstShown(shard, period[0]), period[1]);
    const divisor = relative && base ? base : 1;
    const key = `${entry.id} ${divisor}`;
    const drawn = held.lines.get(key) ?? onAxis(shard, held.axis, divisor);
    held.lines.set(key, drawn);
    const values = log ? positive(held, key, drawn.values) : drawn.values;
    const scale = relative ? "ratio" : shard.unit || "number";
    return { entry, shard, values, places: drawn.places, divisor, baseline: base, scale, color, faint: false, mean: null };
  });
  return {
    lines,
    axis: held.axis,
    xs: held.axis.xs,
    log,
    relative,
    y: state["y"] ?? "",
    group,
    multiples: state["multiples"] === "1",
    band: state["band"] !== "0",
    kinds: kindsOf(state),
    marks: held.marks,
    range: held.axis.rangeOf(period),
    period,
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
