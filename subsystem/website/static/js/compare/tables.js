// @ts-check
/** What a comparison shows: its verdict in words, geometric means, a row for each series. */

import { bounds, grouped, wayOf } from "./rows.js";
import { root } from "../data.js";
import { el, table } from "../dom.js";
import { change, counted, day, quantity, seconds } from "../format.js";

/** @typedef {import("./rows.js").Row} Row */
/** @typedef {import("../ratios.js").Side} Side */

/** The signs of every page: words_shown.py has the same. */
const SIGNS = { worse: "\u25bc ", better: "\u25b2 ", changed: "\u25c7 " };

/**
 * How many series, how many real changes each way, the extremes.
 *
 * @param {Row[]} rows
 * @param {{a: string, b: string}} names
 */
export function verdict(rows, names) {
  const both = rows.filter((row) => row.change);
  const real = both.filter((row) => row.change?.real);
  const ways = real.map((row) => wayOf(row.change?.ratio ?? 1, row.entry.direction));
  const [worse, better, changed] = ["worse", "better", "changed"].map((way) => ways.filter((one) => one === way).length);
  const unknown = both.filter((row) => row.change?.real === null).length;
  const missing = rows.length - both.length;
  const head =
    real.length === 0
      ? `\u2713 No real change in ${counted(both.length, "series", "series")}.`
      : `${worse ? SIGNS.worse : better ? SIGNS.better : SIGNS.changed}${counted(real.length, "real change")} in ` +
        `${counted(both.length, "series", "series")}: ${worse} worse, ${better} better` +
        `${changed ? `, ${changed} changed` : ""}.`;
  const extra = [
    `A is ${names.a}, B is ${names.b}.`,
    missing ? `${counted(missing, "series", "series")} ${missing === 1 ? "has" : "have"} no value on both sides.` : "",
    unknown ? `Of ${unknown} nobody can tell: too few nights.` : "",
  ];
  return [
    el("p", { class: "headline" }, both.length ? head : "Nothing was measured on both sides."),
    el("p", { class: "quiet" }, extra.filter(Boolean).join(" ")),
  ];
}

/** A row for each group, a column for each metric. @param {Row[]} rows @param {string} by */
export function groupTable(rows, by) {
  const groups = grouped(rows, by);
  if (!groups.length) return el("p", { class: "quiet" }, "No series has a value on both sides.");
  const directions = new Map(rows.map((row) => [row.entry.metric, row.entry.direction]));
  const metrics = [...new Set(groups.map((group) => group.metric))];
  const cells = [...new Set(groups.map((group) => group.name))].map((name) => [
    el("bdi", {}, name || "(none)"),
    ...metrics.map((metric) => {
      const group = groups.find((one) => one.name === name && one.metric === metric);
      return group ? groupCell(group, directions.get(metric) ?? "none") : "";
    }),
  ]);
  return el(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "Geometric means" },
    table(
      "Geometric mean of B/A, as a change, with its 95 % interval and the number of series",
      [by, ...metrics],
      cells,
    ),
  );
}

/** @param {import("./rows.js").Group} group @param {"lower" | "higher" | "none"} direction */
function groupCell(group, direction) {
  const way = wayOf(group.ratio, direction);
  const sure = group.low > 1 || group.high < 1;
  const sign = way === "the same" ? "" : SIGNS[way];
  return el(
    "span",
    {},
    el(
      "span",
      { class: sure ? `way is-${way}` : "way" },
      `${sure ? sign : ""}${change(group.ratio)}${sure ? ` ${way}` : ""}`,
    ),
    el("span", { class: "quiet" }, ` ${bounds(group)}, ${group.count} series`),
  );
}

/** @param {Row[]} rows @param {Side} a @param {Side} b */
export function rowTable(rows, a, b) {
  if (!rows.length) return el("p", { class: "quiet" }, "No series to show. Take a filter away.");
  const cells = rows.map(({ entry, other, a: left, b: right, change: moved, sameCode }) => {
    const real = moved?.real;
    const way = wayOf(moved?.ratio ?? 1, entry.direction);
    const state = real === null ? "unknown" : !real ? "noise" : way;
    const words = {
      unknown: "? too few nights",
      noise: "\u00b7 within noise",
      worse: `${SIGNS.worse}worse`,
      better: `${SIGNS.better}better`,
      changed: `${SIGNS.changed}changed`,
      "the same": "=",
    }[state];
    return [
      el(
        "a",
        { href: exploreUrl(other ? [entry, other] : [entry], left, right) },
        el("bdi", {}, entry.name),
        other ? el("span", { class: "quiet" }, ` and ${other.experiment}`) : null,
      ),
      change(moved?.ratio),
      el(
        "span",
        { class: `way is-${state.replace(" ", "-")}` },
        words,
        sameCode && real ? el("span", { class: "quiet" }, " same generated code: TVM's runtime or the machine") : null,
      ),
      value(left, entry, a),
      value(right, entry, b),
      moved ? bounds(moved) : "\u2013",
    ];
  });
  const heads = ["Series", "Change", "Verdict", "A", "B", "B/A, 95 %"];
  return el(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "Series" },
    table(counted(rows.length, "series", "series"), heads, cells, new Set([1, 3, 4, 5])),
  );
}

/** @param {import("../ratios.js").Summary | null} summary @param {import("../data.js").Entry} entry @param {Side} side */
function value(summary, entry, side) {
  if (!summary) return "\u2013";
  const text = quantity(summary.value, entry.unit);
  if (side.kind !== "night") return `${text} (${counted(summary.nights, "night")})`;
  return el(
    "a",
    {
      href: `${root()}receipt.html#night=${summary.stamp}&series=${encodeURIComponent(entry.id)}`,
      title: `Receipt, ${day(summary.stamp)}`,
    },
    text,
  );
}

/**
 * The series in the explorer, from a month before the older side on.
 *
 * @param {readonly import("../data.js").Entry[]} entries
 * @param {import("../ratios.js").Summary | null} a
 * @param {import("../ratios.js").Summary | null} b
 */
function exploreUrl(entries, a, b) {
  const first = Math.min(...[a, b].flatMap((one) => (one ? [seconds(one.stamp)] : [])));
  const from = Number.isFinite(first) ? `&from=${new Date((first - 30 * 86400) * 1e3).toISOString().slice(0, 10)}` : "";
  return `${root()}explore.html#series=${entries.map((entry) => encodeURIComponent(entry.id)).join(",")}${from}`;
}
