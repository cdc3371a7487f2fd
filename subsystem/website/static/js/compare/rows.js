// @ts-check
/** The rows of a comparison: sorted, filtered, put into groups, as Markdown. Nothing here touches the page. */

import { change, number, quantity } from "../format.js";
import { compare, geometricMean, noiseOf, summarise, worsening } from "../ratios.js";

const VARIANT_SIGN = "@";

/** @typedef {import("../data.js").Entry} Entry */
/** @typedef {import("../data.js").Shard} Shard */
/** @typedef {import("../ratios.js").Side} Side */
/** @typedef {import("../ratios.js").Summary} Summary */
/** @typedef {import("../ratios.js").Change} Change */
/**
 * @typedef {{
 *   entry: Entry, a: Summary | null, b: Summary | null, change: Change | null, sameCode: boolean,
 *   noise: number | null, other?: Entry,
 * }} Row one series; `other` is the series of the same point on another TVM that one side is of
 * @typedef {{
 *   name: string, metric: string, count: number, ratio: number, low: number, high: number, real: number,
 * }} Group
 */

/**
 * @param {Entry} entry
 * @param {Shard} shard
 * @param {Side} sideA
 * @param {Side} sideB
 * @returns {Row}
 */
export function makeRow(entry, shard, sideA, sideB) {
  return rowOf(entry, summarise(shard, sideA), summarise(shard, sideB), noiseOf(shard));
}

/**
 * @param {Entry} entry
 * @param {Summary | null} a
 * @param {Summary | null} b
 * @param {number | null} noise
 * @returns {Row}
 */
function rowOf(entry, a, b, noise) {
  const sameCode = Boolean(a && b && a.code !== null && a.code === b.code);
  return { entry, a, b, change: a && b ? compare(a, b, noise) : null, sameCode, noise };
}

/**
 * The rows, where a point that no series has on both sides is put together from two: of `NAME` and of `NAME@TVM`, the
 * same point on another TVM of the home. It stands under the name of the home's own, with the larger noise of the two.
 *
 * @param {readonly Row[]} rows
 * @returns {Row[]}
 */
export function joined(rows) {
  /** @type {Map<string, Row[]>} */
  const points = new Map();
  for (const row of rows) {
    const key = pointOf(row.entry);
    points.set(key, [...(points.get(key) ?? []), row]);
  }
  return [...points.values()].flatMap((members) => {
    const a = members.find((row) => row.a);
    const b = members.find((row) => row.b);
    if (!a || !b || members.some((row) => row.a && row.b)) return members;
    const [own, other] = b.entry.experiment.includes(VARIANT_SIGN) ? [a, b] : [b, a];
    const noise = a.noise === null || b.noise === null ? null : Math.max(a.noise, b.noise);
    const rest = members.filter((row) => row !== a && row !== b);
    return [{ ...rowOf(own.entry, a.a, b.b, noise), other: other.entry }, ...rest];
  });
}

/** What two series have in common that measure the same point on two TVMs. @param {Entry} entry */
function pointOf(entry) {
  const { experiment, verdict, grade, ...labels } = entry.labels;
  const sorted = Object.entries(labels).sort(([x], [y]) => (x < y ? -1 : 1));
  return JSON.stringify([(experiment ?? "").split(VARIANT_SIGN)[0], entry.unit, sorted]);
}

/**
 * The rows that have a ratio: worst first, or best first, or by name; real changes only if asked.
 *
 * @param {readonly Row[]} rows
 * @param {{order: string, real: boolean}} how
 */
export function arranged(rows, { order, real }) {
  const size = (/** @type {Row} */ row) => Math.log(worsening(row.change?.ratio ?? 1, row.entry.direction));
  const kept = rows.filter((row) => row.change && (!real || row.change.real === true));
  const byName = (/** @type {Row} */ x, /** @type {Row} */ y) => (x.entry.name < y.entry.name ? -1 : 1);
  if (order === "name") return kept.sort(byName);
  return kept.sort((x, y) => (order === "best" ? size(x) - size(y) : size(y) - size(x)) || byName(x, y));
}

/**
 * Geometric means of the ratios, by one fact of the series and by metric, for times and sizes do not mix.
 *
 * @param {readonly Row[]} rows
 * @param {string} key
 * @returns {Group[]}
 */
export function grouped(rows, key) {
  /** @type {Map<string, Row[]>} */
  const groups = new Map();
  for (const row of rows) {
    if (!row.change) continue;
    const name = JSON.stringify([row.entry.labels[key] ?? "", row.entry.metric]);
    groups.set(name, [...(groups.get(name) ?? []), row]);
  }
  return [...groups]
    .flatMap(([name, members]) => {
      const [value, metric] = /** @type {[string, string]} */ (JSON.parse(name));
      const mean = geometricMean(members.flatMap((row) => row.change ?? []));
      const real = members.filter((row) => row.change?.real).length;
      return mean ? [{ name: value, metric, real, ...mean }] : [];
    })
    .sort((x, y) => (x.metric < y.metric ? -1 : x.metric > y.metric ? 1 : x.name < y.name ? -1 : 1));
}

/**
 * "better", "worse" or "changed", or "the same", of a metric of this direction.
 *
 * @param {number} ratio
 * @param {"lower" | "higher" | "none"} direction
 */
export function wayOf(ratio, direction) {
  if (ratio === 1) return "the same";
  if (direction === "none") return "changed";
  return ratio > 1 === (direction === "lower") ? "worse" : "better";
}

/**
 * The rows as a Markdown table, for issues and pull requests.
 *
 * @param {readonly Row[]} rows
 * @param {{a: string, b: string, url: string, rule: string}} about
 */
export function markdown(rows, { a, b, url, rule }) {
  const lines = rows.map(
    ({ entry, a: left, b: right, change: moved }) =>
      `| ${cell(entry.name)} | ${quantity(left?.value, entry.unit)} | ${quantity(right?.value, entry.unit)} | ` +
      `${change(moved?.ratio)} | ${moved ? bounds(moved) : ""} | ` +
      `${moved?.real ? wayOf(moved.ratio, entry.direction) : moved?.real === null ? "unknown" : "within noise"} |`,
  );
  return [
    `**A**: ${cell(a)}, **B**: ${cell(b)}`,
    "",
    "| series | A | B | change | ratio B/A, 95 % | |",
    "|---|--:|--:|--:|--:|---|",
    ...lines,
    "",
    rule,
    "",
    url,
    "",
  ].join("\n");
}

/** The interval of a ratio in words. @param {{low: number, high: number}} interval */
export function bounds({ low, high }) {
  return Number.isNaN(low) ? "\u2013" : `${number(low, 4)} to ${number(high, 4)}`;
}

/** Text that ends no cell, begins no link and no HTML. @param {string} text */
function cell(text) {
  return text.replace(/[\\|<>[\]`*_~#]/g, "\\$&").replace(/\s+/g, " ");
}
