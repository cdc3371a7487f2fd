// @ts-check
/** The rows of a comparison: sorted, filtered, put into groups, as Markdown. Nothing here touches the page. */

import { change, number, quantity } from "./format.js";
import { compare, geometricMean, noiseOf, summarise, worsening } from "./ratios.js";

/** @typedef {import("./data.js").Entry} Entry */
/** @typedef {import("./data.js").Shard} Shard */
/** @typedef {import("./ratios.js").Side} Side */
/** @typedef {import("./ratios.js").Summary} Summary */
/** @typedef {import("./ratios.js").Change} Change */
/**
 * @typedef {{entry: Entry, a: Summary | null, b: Summary | null, change: Change | null, sameCode: boolean}} Row
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
  const [a, b] = [summarise(shard, sideA), summarise(shard, sideB)];
  const sameCode = Boolean(a && b && a.code !== null && a.code === b.code);
  return { entry, a, b, change: a && b ? compare(a, b, noiseOf(shard)) : null, sameCode };
}

/**
 * The rows that have a ratio: worst first, or best first, or by name; real changes only if asked.
 *
 * @param {readonly Row[]} rows
 * @param {{order: string, real: boolean}} how
 */
export function arranged(rows, { order, real }) {
  const size = (/** @type {Row} */ row) => Math.log(worsening(row.change?.ratio ?? 1, row.entry.lowerIsBetter));
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
 * "better", "worse", or "the same", of a metric of this direction.
 *
 * @param {number} ratio
 * @param {boolean} lowerIsBetter
 */
export function direction(ratio, lowerIsBetter) {
  return ratio === 1 ? "the same" : ratio > 1 === lowerIsBetter ? "worse" : "better";
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
      `${moved?.real ? direction(moved.ratio, entry.lowerIsBetter) : moved?.real === null ? "unknown" : "within noise"} |`,
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
