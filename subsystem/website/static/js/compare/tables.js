// @ts-check
/** What a comparison shows: its summary, geometric means, a row for each series. */

import { badness, bounds, changeText, grouped, inOneSentence, SIGNS, STATE_WORDS, stateOf, STATES, wayOf } from "./rows.js";
import { root } from "../data.js";
import { el, table } from "../dom.js";
import { change, counted, day, quantity, seconds } from "../format.js";
import { makeSortable } from "../tables.js";

/** @typedef {import("./rows.js").Row} Row */
/** @typedef {import("./rows.js").State} State */
/** @typedef {import("../ratios.js").Side} Side */

/** @type {Record<State, string>} */
const STATE_SIGNS = { ...SIGNS, noise: "\u00b7 ", same: "= ", unknown: "? ", "only-a": "", "only-b": "" };

/**
 * One sentence, and what the sides are.
 *
 * @param {readonly Row[]} rows
 * @param {{a: string, b: string}} names
 */
export function summary(rows, names) {
  return [
    el("p", { class: "headline" }, inOneSentence(rows, names.a === names.b)),
    el("p", { class: "quiet" }, `A: ${names.a}. B: ${names.b}.`),
  ];
}

/**
 * A chip for each state that some row has; pressed, only such rows are shown.
 *
 * @param {readonly Row[]} rows
 * @param {string} chosen
 * @param {(state: string) => void} choose
 */
export function chips(rows, chosen, choose) {
  const present = STATES.flatMap((state) => {
    const count = rows.filter((row) => stateOf(row) === state).length;
    return count ? [{ state, count }] : [];
  });
  return present.map(({ state, count }) =>
    el(
      "button",
      {
        type: "button",
        class: "chip",
        "aria-pressed": String(state === chosen),
        onclick: () => choose(state === chosen ? "" : state),
      },
      `${STATE_SIGNS[state]}${STATE_WORDS[state]} `,
      el("span", { class: "count" }, count),
    ),
  );
}

/** A row for each group, a column for each metric. @param {readonly Row[]} rows @param {string} by */
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
  const heads = [by, ...metrics.map((metric) => metric.replace(/_/g, " "))];
  const made = table("Geometric mean of B/A as a change, its 95 % interval, number of series", heads, cells);
  makeSortable(made);
  return el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Geometric means" }, made);
}

/** @param {import("./rows.js").Group} group @param {"lower" | "higher" | "none"} direction */
function groupCell(group, direction) {
  const way = wayOf(group.ratio, direction);
  const isSure = way !== "the same" && (group.low > 1 || group.high < 1);
  const interval = Number.isNaN(group.low) ? "" : ` ${change(group.low)} to ${change(group.high)},`;
  return el(
    "span",
    { "data-sort": group.ratio },
    el(
      "span",
      { class: isSure ? `way is-${way}` : "way" },
      isSure ? `${SIGNS[way]}${change(group.ratio)} ${way}` : change(group.ratio),
    ),
    el("span", { class: "quiet" }, `${interval} ${group.count} series`),
  );
}

/**
 * @param {readonly Row[]} rows
 * @param {{a: Side, b: Side, open: (row: Row, place: HTMLElement) => void}} how open: fill the place below a row
 */
export function rowTable(rows, { a, b, open }) {
  if (!rows.length) return el("p", { class: "quiet" }, "No series matches. Remove a filter.");
  const heads = ["Series", "Change", "95 % interval", "Verdict", "A", "B"];
  const cells = rows.map((row) => rowCells(row, a, b));
  const made = table(counted(rows.length, "series", "series"), heads, cells, new Set([1, 2, 4, 5]));
  made.classList.add("as-cards");
  const [body] = made.tBodies;
  [...(body?.rows ?? [])].forEach((line, at) => {
    const row = rows[at];
    if (!row) return;
    line.classList.add(`is-${stateOf(row)}`);
    const keys = [row.entry.name, row.change ? badness(row) : "", "", STATES.indexOf(stateOf(row)), row.a?.value, row.b?.value];
    [...line.cells].forEach((cell, column) => {
      if (heads[column]) cell.dataset["label"] = heads[column];
      if (keys[column] !== "") cell.dataset["sort"] = String(keys[column] ?? "");
    });
    line.cells[0]?.prepend(opener(row, line, open));
  });
  makeSortable(made);
  return el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Series" }, made);
}

/**
 * The button that opens a row to its last nights.
 *
 * @param {Row} row
 * @param {HTMLTableRowElement} line
 * @param {(row: Row, place: HTMLElement) => void} open
 */
function opener(row, line, open) {
  const button = el(
    "button",
    { type: "button", class: "opener", "aria-expanded": "false", "aria-label": `Last nights of ${row.entry.name}` },
    "\u25b8",
  );
  button.addEventListener("click", () => {
    const isOpen = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!isOpen));
    button.textContent = isOpen ? "\u25b8" : "\u25be";
    if (isOpen) return line.nextElementSibling?.remove();
    const place = el("td", { colspan: line.cells.length });
    line.after(el("tr", { "data-with": "", class: "opened" }, place));
    open(row, place);
  });
  return button;
}

/** @param {Row} row @param {Side} a @param {Side} b */
function rowCells(row, a, b) {
  const { entry, other, a: left, b: right, sameCode } = row;
  const state = stateOf(row);
  const isReal = state === "worse" || state === "better" || state === "changed";
  return [
    el(
      "a",
      { href: exploreUrl(other ? [entry, other] : [entry], left, right) },
      el("bdi", {}, entry.name),
      other ? el("span", { class: "quiet" }, ` and ${other.experiment}`) : null,
    ),
    changeText(row),
    bounds(row),
    el(
      "span",
      { class: `way is-${state}` },
      `${STATE_SIGNS[state]}${STATE_WORDS[state]}`,
      sameCode && isReal ? el("span", { class: "quiet" }, ", same generated code: TVM's runtime or the machine") : null,
    ),
    value(left, entry, a),
    value(right, entry, b),
  ];
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
