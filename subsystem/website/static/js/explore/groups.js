// @ts-check
/** Series in groups, each with the geometric mean of its members. Touches no page. */

import { seconds, stampOf } from "../format.js";
import { ALL, valueOf } from "./grouping.js";

/** @typedef {import("../data.js").Entry} Entry */
/** @typedef {import("../data.js").Shard} Shard */
/** @typedef {import("../chart/chart.js").View} View */
/** @typedef {import("../chart/chart.js").ChartLine} ChartLine */

const UNIT_OF_MEANS = "\u00d7 baseline";

/**
 * The view with a line for the mean of each group before its members, which are faint. On a night on which some have no
 * value the mean is that of the others.
 *
 * @param {View} view whose lines are relative to their baselines
 * @returns {View}
 */
export function withMeans(view) {
  /** @type {Map<string, ChartLine[]>} */
  const groups = new Map();
  for (const line of view.lines) {
    const name = view.group === ALL ? "all" : `${view.group} ${valueOf(line.entry, view.group)}`;
    groups.set(name, [...(groups.get(name) ?? []), line]);
  }
  const lines = [...groups]
    .sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }))
    .flatMap(([name, members], color) => [
      meanOf(view, name, members, color),
      ...members.map((member) => ({ ...member, color, faint: true })),
    ]);
  return { ...view, lines, band: false };
}

/**
 * @param {View} view
 * @param {string} name
 * @param {ChartLine[]} lines
 * @param {number} color
 * @returns {ChartLine}
 */
function meanOf(view, name, lines, color) {
  const members = lines.filter((line) => line.baseline);
  const columns = view.xs.map((_x, place) => members.flatMap((line) => logAt(line, place)));
  const values = columns.map((logs) =>
    logs.length ? Math.exp(logs.reduce((sum, log) => sum + log, 0) / logs.length) : undefined,
  );
  const points = values.flatMap((value, place) => (value === undefined ? [] : [{ value, place }]));
  points.sort((a, b) => timeAt(members, a.place) - timeAt(members, b.place)); // by commit, places are not in time's order
  /** @type {number[]} */
  const places = new Array(view.xs.length).fill(-1);
  points.forEach(({ place }, index) => (places[place] = index));
  const shard = shardOf(name, members, points);
  return {
    entry: entryOf(shard, members.length),
    shard,
    values: values.map((value, place) => (value === undefined && isBreak(members, place) ? null : value)),
    places,
    divisor: 1,
    baseline: 1,
    scale: "ratio",
    color,
    faint: false,
    mean: { of: members.length, counts: points.map(({ place }) => columns[place]?.length ?? 0) },
  };
}

/** @param {ChartLine} line @param {number} place */
function logAt(line, place) {
  const value = line.values[place];
  return typeof value === "number" && value > 0 ? [Math.log(value)] : [];
}

/** Whether every line is interrupted there. @param {ChartLine[]} lines @param {number} place */
function isBreak(lines, place) {
  return lines.every((line) => line.values[place] === null);
}

/** The member with a point there. @param {ChartLine[]} lines @param {number} place */
function withPoint(lines, place) {
  return lines.find((line) => (line.places[place] ?? -1) >= 0);
}

/** @param {ChartLine[]} lines @param {number} place */
function timeAt(lines, place) {
  const line = withPoint(lines, place);
  return seconds(line?.shard.stamp[line.places[place] ?? -1] ?? "");
}

/**
 * @param {string} name
 * @param {ChartLine[]} members
 * @param {{value: number, place: number}[]} points
 * @returns {Shard}
 */
function shardOf(name, members, points) {
  const tvms = [...new Set(members.flatMap((line) => line.shard.tvms))];
  const nothing = points.map(() => null);
  return {
    id: `mean ${name}`,
    name: `${name}: mean of ${members.length}`,
    experiment: "",
    metric: "mean",
    unit: UNIT_OF_MEANS,
    direction: members[0]?.shard.direction ?? "none",
    labels: {},
    stamp: points.map(({ place }) => stampOf(timeAt(members, place))),
    value: points.map(({ value }) => value),
    low: nothing,
    high: nothing,
    std: nothing,
    samples: nothing,
    tvms,
    tvm: points.map(({ place }) => {
      const line = withPoint(members, place);
      return tvms.indexOf(line?.shard.tvms[line.shard.tvm[line.places[place] ?? -1] ?? -1] ?? "");
    }),
    machine: nothing,
    machines: [],
    code: nothing,
    noise: null,
    steps: [],
    annotations: [],
    incidents: [],
  };
}

/** @param {Shard} shard @param {number} count @returns {Entry} */
function entryOf(shard, count) {
  const { id, name, metric, unit, direction, labels } = shard;
  const nothing = { last: null, low: null, high: null, change: null, visible: null, noise: null, ratioNoise: null };
  const empty = { experiment: "", title: "", page: "", text: name, lastStamp: "", verdict: "", grade: "", pack: "" };
  return { id, name, metric, unit, direction, labels, ...nothing, ...empty, points: count, past: false, incident: null };
}
