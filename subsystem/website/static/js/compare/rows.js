// @ts-check
/** The rows of a comparison: sorted, filtered, put into groups, as Markdown and CSV. Nothing here touches the page. */

import { formatCsv } from "../csv.js";
import { pointsOf } from "./nights.js";
import { change, counted, quantity } from "../format.js";
import { compare, geometricMean, summarise, worsening } from "../ratios.js";

const VARIANT_SIGN = "@";
/** The metrics that are ratios to the reference, measured in turn with it: as tvmdash.records.metrics.RATIOS. */
const RATIO = /^(run_time|value)_ratio$/;
/** What a ratio to the reference scatters from night to night where the alerts do not know: docs/explanation/verdict.md. */
const LEAST_RATIO_NOISE = 0.005;

/** @typedef {import("../data.js").Entry} Entry */
/** @typedef {import("../ratios.js").Side} Side */
/** @typedef {import("../ratios.js").Summary} Summary */
/** @typedef {import("../ratios.js").Change} Change */
/** @typedef {import("./nights.js").Night} Night */
/** @typedef {"worse" | "better" | "changed" | "noise" | "same" | "unknown" | "only-a" | "only-b"} State */
/**
 * @typedef {{side: Side, nights: readonly Night[]}} Measurements of one side
 * @typedef {"times" | "reference" | "exact"} Basis
 *   what the change is taken from: the values, their ratios to the reference that both sides had, or exact numbers
 * @typedef {{
 *   entry: Entry, a: Summary | null, b: Summary | null, change: Change | null, basis: Basis, sameCode: boolean,
 *   other?: Entry,
 * }} Row one series; `other` is the series of the same point on another TVM that one side is of
 * @typedef {{
 *   name: string, metric: string, count: number, ratio: number, low: number, high: number, real: number,
 * }} Group
 */

/**
 * A row for each series that has a value on at least one side.
 *
 * @param {readonly Entry[]} series
 * @param {Measurements} a
 * @param {Measurements} b
 * @returns {Row[]}
 */
export function makeRows(series, a, b) {
  const ratios = new Map(series.flatMap((entry) => (isRatio(entry) ? [[valueKey(entry), entry]] : [])));
  const rows = series
    .filter((entry) => !isRatio(entry))
    .map((entry) => makeRow(entry, ratios.get(valueKey(entry)) ?? null, a, b));
  return joined(rows).filter((row) => row.a || row.b);
}

/** @param {Entry} entry */
function isRatio(entry) {
  return RATIO.test(entry.metric);
}

/** The same for a value and for its ratio to the reference. @param {Entry} entry */
function valueKey(entry) {
  const { metric, verdict, grade, ...labels } = entry.labels;
  const sorted = Object.entries(labels).sort(([x], [y]) => (x < y ? -1 : 1));
  return JSON.stringify([(metric ?? "").replace(RATIO, "$1"), sorted]);
}

/**
 * @param {Entry} entry
 * @param {Entry | null} ratio
 * @param {Measurements} a
 * @param {Measurements} b
 * @returns {Row}
 */
function makeRow(entry, ratio, a, b) {
  const values = (/** @type {string} */ id, /** @type {Measurements} */ of) =>
    pointsOf(id, entry.experiment, of.side, of.nights);
  const [left, right] = [values(entry.id, a), values(entry.id, b)];
  const row = rowOf(entry, summarise(left.points), summarise(right.points), entry.noise);
  if (!ratio || !row.change || !left.reference || left.reference !== right.reference) return row;
  const [from, to] = [summarise(values(ratio.id, a).points), summarise(values(ratio.id, b).points)];
  const beside = from && to ? compare(from, to, Math.max(entry.ratioNoise ?? 0, LEAST_RATIO_NOISE)) : null;
  return beside ? { ...row, change: beside, basis: "reference" } : row;
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
  const basis = noise === 0 ? "exact" : "times";
  return { entry, a, b, change: a && b ? compare(a, b, noise) : null, basis, sameCode };
}

/** How a row stands. @param {Row} row @returns {State} */
export function stateOf(row) {
  if (!row.a) return "only-b";
  if (!row.b) return "only-a";
  if (!row.change || row.change.real === null) return row.a.value === row.b.value ? "same" : "unknown";
  if (row.basis === "exact" && row.change.ratio === 1) return "same";
  if (!row.change.real) return "noise";
  const way = wayOf(row.change.ratio, row.entry.direction);
  return way === "the same" ? "same" : way;
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
    const [left, right] = [a.entry.noise, b.entry.noise];
    const noise = left === null || right === null ? null : Math.max(left, right);
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

/** @type {State[]} */
export const STATES = ["worse", "better", "changed", "unknown", "only-a", "only-b", "noise", "same"];

/**
 * The rows in the order of their need for attention: by state, the largest change first.
 *
 * @param {readonly Row[]} rows
 */
export function byNeed(rows) {
  const keyed = rows.map((row) => ({ row, place: STATES.indexOf(stateOf(row)), size: Math.abs(badness(row)) }));
  keyed.sort((x, y) => x.place - y.place || y.size - x.size || (x.row.entry.name < y.row.entry.name ? -1 : 1));
  return keyed.map(({ row }) => row);
}

/** How much worse, on the logarithmic scale: above 0 is worse. @param {Row} row */
export function badness(row) {
  return Math.log(worsening(row.change?.ratio ?? 1, row.entry.direction));
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
 * The change as it is told: of exact numbers the difference in their unit.
 *
 * @param {Row} row
 */
export function changeText({ entry, a, b, change: moved, basis }) {
  if (!a || !b) return "";
  if (basis !== "exact" || !moved) return change(moved?.ratio);
  const by = b.value - a.value;
  if (by === 0) return "0";
  return `${by < 0 ? "\u2212" : "+"}${quantity(Math.abs(by), entry.unit)}`;
}

/** The signs of every page: render/page.py has the same. */
export const SIGNS = { worse: "\u2716 ", better: "\u2605 ", changed: "\u25c7 ", missing: "\u2205 " };

/**
 * What the comparison says. It is good only where every series of A has a value in B and could be judged.
 *
 * @param {readonly Row[]} rows
 * @param {boolean} isItself whether A and B are the same
 */
export function inOneSentence(rows, isItself) {
  if (isItself) return "A and B are the same: there is nothing to compare.";
  const count = (/** @type {State} */ state) => rows.filter((row) => stateOf(row) === state).length;
  const both = rows.filter((row) => row.a && row.b).length;
  const [gone, added, unknown] = [count("only-a"), count("only-b"), count("unknown")];
  const ways = /** @type {const} */ (["worse", "better", "changed"]).filter(count);
  const rest = [
    gone ? `${gone} only in A` : "",
    added ? `${added} only in B` : "",
    unknown ? `${unknown} not judged, after too few nights` : "",
  ].filter(Boolean);
  const also = rest.length ? `; ${rest.join(", ")}` : "";
  if (!both) return `${gone ? SIGNS.missing : ""}Nothing was measured on both sides${also}.`;
  const [way] = ways;
  if (way) return `${SIGNS[way]}B against A: ${ways.map((one) => `${count(one)} ${one}`).join(", ")} of ${both} series${also}.`;
  const sign = gone ? SIGNS.missing : unknown ? "" : "\u2713 ";
  const judged = both - unknown;
  return `${sign}${judged ? `None of ${counted(judged, "series", "series")} changed` : "No series could be judged"}${also}.`;
}

/** @type {Record<State, string>} */
export const STATE_WORDS = {
  worse: "worse",
  better: "better",
  changed: "changed",
  noise: "within noise",
  same: "equal",
  unknown: "too few nights",
  "only-a": "only in A",
  "only-b": "only in B",
};

/**
 * The rows as a Markdown table, for issues and pull requests.
 *
 * @param {readonly Row[]} rows
 * @param {{a: string, b: string, url: string, rule: string}} about
 */
export function markdown(rows, { a, b, url, rule }) {
  const lines = rows.map(
    (row) =>
      `| ${cell(row.entry.name)} | ${quantity(row.a?.value, row.entry.unit)} | ` +
      `${quantity(row.b?.value, row.entry.unit)} | ${changeText(row)} | ${bounds(row)} | ${STATE_WORDS[stateOf(row)]} |`,
  );
  return [
    `**A**: ${cell(a)}, **B**: ${cell(b)}`,
    "",
    "| series | A | B | change | 95 % interval | |",
    "|---|--:|--:|--:|--:|---|",
    ...lines,
    "",
    rule,
    "",
    url,
    "",
  ].join("\n");
}

const CSV_HEADS = ["series", "id", "metric", "unit", "a", "b", "ratio", "low", "high", "basis", "verdict"];

/**
 * The rows for a spreadsheet: numbers in full, as ratios.
 *
 * @param {readonly Row[]} rows
 */
export function csv(rows) {
  const lines = rows.map((row) => {
    const { entry, a, b, change: moved, basis } = row;
    const numbers = [a?.value, b?.value, moved?.ratio, moved?.low, moved?.high].map((value) =>
      value === undefined || Number.isNaN(value) ? "" : String(value),
    );
    return [entry.name, entry.id, entry.metric, entry.unit, ...numbers, moved ? basis : "", stateOf(row)];
  });
  return formatCsv(CSV_HEADS, lines);
}

/** The interval of a row's change, as a change; empty where nothing scatters or nobody knows. @param {Row} row */
export function bounds({ change: moved, basis }) {
  if (!moved || basis === "exact" || Number.isNaN(moved.low)) return "";
  return `${change(moved.low)} to ${change(moved.high)}`;
}

/** Text that ends no cell, begins no link and no HTML. @param {string} text */
function cell(text) {
  return text.replace(/[\\|<>[\]`*_~#]/g, "\\$&").replace(/\s+/g, " ");
}
