// @ts-check
/** Below the chart: the series on it, the kinds of marks, and what baseline and band mean. */

import { placesInView } from "../chart/axis.js";
import { el } from "../dom.js";
import { ALL, keysOf } from "./grouping.js";
import { KINDS, kindsOf } from "./view.js";
import { change, counted, day, quantity, stampOf } from "../format.js";
import { seriesColor } from "../plot.js";
import { changeState } from "../state.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../chart/chart.js").View} View */

const KIND_WORDS = { tvm: "TVM versions", machine: "machines", annotation: "annotations", incident: "incidents" };

/**
 * The series on the chart, with the value of the last night in view; `ids` are all that the address names.
 *
 * @param {View} shown
 * @param {string[]} ids
 */
export function legend(shown, ids) {
  return shown.lines.map((line) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.backgroundColor = seriesColor(line.color);
    const at = lastIn(line, shown);
    const value = at === null ? null : line.shard.value[at];
    const moved = value && line.baseline ? `, ${change(value / line.baseline)} from baseline` : "";
    return el(
      "li",
      { class: line.mean ? "is-mean" : line.faint ? "is-faint" : null },
      swatch,
      el("bdi", { class: "series-name" }, line.entry.name),
      el("span", { class: "series-value" }, line.mean ? moved.slice(2) : `${quantity(value, line.shard.unit)}${moved}`),
      line.mean ? null : dropButton(line, ids),
    );
  });
}

/** @param {import("../chart/chart.js").ChartLine} line @param {string[]} ids */
function dropButton({ entry }, ids) {
  const drop = () => changeState({ series: ids.filter((id) => id !== entry.id).join(",") || "none" });
  return el(
    "button",
    { type: "button", class: "drop", "aria-label": `Take ${entry.name} off the chart`, onclick: drop },
    "×",
  );
}

/**
 * The kinds of marks, each with its count in view, to leave out or show.
 *
 * @param {View} shown
 * @param {State} state
 */
export function markKinds(shown, state) {
  const kinds = kindsOf(state);
  const [from, to] = shown.period;
  return KINDS.map((kind) => {
    const count = shown.marks.filter(
      (mark) => mark.kind === kind && mark.time <= to && (mark.end ?? mark.time) >= from,
    ).length;
    return el(
      "label",
      { class: `kind kind-${kind}` },
      el("input", {
        type: "checkbox",
        checked: kinds.has(kind),
        onchange: () => {
          const hidden = KINDS.filter((one) => (one === kind ? kinds.has(one) : !kinds.has(one)));
          changeState({ hide: hidden.join(",") });
        },
      }),
      ` ${KIND_WORDS[kind]} `,
      el("span", { class: "count" }, String(count)),
    );
  });
}

/** The place of its last value in view. @param {import("../chart/chart.js").ChartLine} line @param {View} view */
export function lastIn(line, view) {
  const known = line.places.slice(...placesInView(view)).filter((at) => at >= 0 && line.shard.value[at] !== null);
  return known.length ? Math.max(...known) : null;
}

/** What baseline and band mean in this view. @param {View} view */
export function ruleOf(view) {
  const units = new Set(view.lines.map((line) => line.shard.unit));
  const forced = view.relative && !view.group && units.size > 2 ? "More than two units: shown relative to the baseline. " : "";
  const band =
    view.band && view.lines.length <= 3
      ? " Shaded: two noise scales around the level between steps, where 95 of 100 unchanged nights lie."
      : "";
  const first = day(stampOf(Math.max(view.period[0], view.axis.ends[0])));
  const means = view.group
    ? "Bold: the geometric mean of the members' ratios to their baselines, on each night of those that have a value. "
    : "";
  return `${forced}${means}Baseline: the median of a series' first 10 nights in view, from ${first} on.${band} Times are UTC.`;
}

/** What the series in view can be grouped by. @param {View} view */
export function groupChoices(view) {
  const entries = view.lines.filter((line) => !line.mean).map((line) => line.entry);
  const keys = new Set(keysOf(entries));
  if (view.group && view.group !== ALL) keys.add(view.group);
  const choices = [["", "nothing"], [ALL, "all series"], ...[...keys].sort().map((key) => [key, key])];
  return choices.map(([value, words]) => el("option", { value, selected: value === view.group }, words));
}

/** How many points a scale leaves out, and the way to them. @param {number} count */
export function outsideNote(count) {
  if (!count) return [];
  const words = `${counted(count, "point")} in view ${count === 1 ? "lies" : "lie"} outside the scale, marked at its edge. `;
  return [words, el("button", { type: "button", onclick: () => changeState({ y: "all" }) }, "Show all values")];
}
