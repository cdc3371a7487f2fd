// @ts-check
/** Below the chart: the series on it, the kinds of marks, and what baseline and band mean. */

import { el } from "../dom.js";
import { KINDS, kindsOf } from "./view.js";
import { change, day, quantity, stampOf } from "../format.js";
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
  return shown.lines.map((line, place) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.backgroundColor = seriesColor(place);
    const at = lastIn(line, shown);
    const value = at === null ? null : line.shard.value[at];
    const moved = value && line.baseline ? `, ${change(value / line.baseline)}` : "";
    return el(
      "li",
      {},
      swatch,
      el("bdi", { class: "series-name" }, line.entry.name),
      el("span", { class: "series-value" }, `${quantity(value, line.shard.unit)}${moved}`),
      el(
        "button",
        {
          type: "button",
          class: "drop",
          "aria-label": `Take ${line.entry.name} off the chart`,
          onclick: () => changeState({ series: ids.filter((id) => id !== line.entry.id).join(",") || "none" }),
        },
        "×",
      ),
    );
  });
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

/** @param {import("../chart/chart.js").ChartLine} line @param {View} view */
function lastIn(line, view) {
  for (let index = view.xs.length - 1; index >= 0; index -= 1) {
    if ((view.xs[index] ?? 0) > view.range[1]) continue;
    const at = line.places[index] ?? -1;
    if (at >= 0 && line.shard.value[at] !== null) return at;
  }
  return null;
}

/** What baseline and band mean in this view. @param {View} view */
export function ruleOf(view) {
  const units = new Set(view.lines.map((line) => line.shard.unit));
  const forced = view.relative && units.size > 2 ? "More than two units: shown relative to the baseline. " : "";
  const band =
    view.band && view.lines.length <= 3
      ? " Shaded: two noise scales around the level between steps, where 95 of 100 unchanged nights lie."
      : "";
  const first = day(stampOf(Math.max(view.period[0], view.axis.ends[0])));
  return `${forced}Baseline: the median of a series' first 10 nights in view, from ${first} on.${band} Times are UTC.`;
}
