// @ts-check
/** What the canvas shows, as tables: values of the nights in view, and what happened meanwhile. */

import { csvOfSeries } from "../csv.js";
import { readSeries } from "../data.js";
import { downloadButton, el, table } from "../dom.js";
import { counted, moment, quantity, stampOf } from "../format.js";
import { placesInView } from "./axis.js";
import { pointFacts, receiptUrl } from "./card.js";

const MOST_ROWS = 400;
const MOST_COLUMNS = 12;
const KINDS = { tvm: "TVM", machine: "machine", annotation: "annotation", incident: "incident" };

/**
 * The values in view, newest first. One series comes with its interval and changes, many as columns of values.
 *
 * @param {import("./chart.js").View} view
 */
export function valuesTable(view) {
  const [from, to] = placesInView(view);
  const [only] = view.lines;
  const shown = view.lines.slice(0, MOST_COLUMNS);
  /** @type {import("../dom.js").Child[][]} */
  const rows = [];
  let left = 0;
  for (let index = to - 1; index >= from; index -= 1) {
    if (!shown.some((line) => (line.places[index] ?? -1) >= 0)) continue;
    if (rows.length >= MOST_ROWS) left += 1;
    else if (view.lines.length === 1 && only) rows.push(oneRow(only, only.places[index] ?? -1));
    else rows.push([moment(stampAt(shown, index)), ...shown.map((line) => cell(line, index))]);
  }
  const [heads, numeric] =
    view.lines.length === 1
      ? [
          [
            "Night",
            "Value",
            "95 % interval",
            "From the night before",
            "From the baseline",
            "TVM",
            "Machine",
            "Receipt",
          ],
          new Set([1, 2, 3, 4]),
        ]
      : [["Night", ...shown.map((line) => line.entry.name)], new Set(shown.map((_line, place) => place + 1))];
  const notes = [
    left ? `${counted(left, "older night")} in view ${left === 1 ? "is" : "are"} not in this table.` : "",
    view.lines.length > MOST_COLUMNS ? `Only the first ${MOST_COLUMNS} series are.` : "",
  ].filter(Boolean);
  return el(
    "div",
    {},
    el(
      "div",
      { class: "scroll", tabindex: 0, role: "group", "aria-label": "Values" },
      table("Values in view, newest first", heads, rows, numeric),
    ),
    notes.length ? el("p", {}, notes.join(" ")) : null,
    el(
      "p",
      {},
      "Everything as CSV: ",
      ...shown.filter((line) => !line.mean).flatMap((line, place) => [
        place ? ", " : "",
        downloadButton(line.entry.name, `${line.entry.id}.csv`, "text/csv", async () =>
          csvOfSeries(await readSeries(line.entry, { past: true })),
        ),
      ]),
    ),
  );
}

/** @param {import("./chart.js").ChartLine} line @param {number} at @returns {import("../dom.js").Child[]} */
function oneRow(line, at) {
  const facts = pointFacts(line, at);
  return [
    moment(facts.stamp),
    facts.value,
    facts.interval || "\u2013",
    facts.previous,
    facts.baseline,
    facts.tvm,
    facts.machine,
    el("a", { href: receiptUrl(facts.stamp, line.entry.id) }, "receipt"),
  ];
}

/** The night of a place. @param {import("./chart.js").ChartLine[]} lines @param {number} index */
function stampAt(lines, index) {
  const line = lines.find((one) => (one.places[index] ?? -1) >= 0);
  return line?.shard.stamp[line.places[index] ?? -1] ?? "";
}

/** @param {import("./chart.js").ChartLine} line @param {number} index */
function cell(line, index) {
  const at = line.places[index] ?? -1;
  return at < 0 ? "\u2013" : quantity(line.shard.value[at], line.shard.unit);
}

/**
 * The marks in view, newest first.
 *
 * @param {import("./chart.js").View} view
 */
export function marksTable(view) {
  const [from, to] = view.period;
  const seen = view.marks.filter((mark) => mark.time <= to && (mark.end ?? mark.time) >= from).reverse();
  if (!seen.length) return el("p", {}, "Nothing is marked in this range.");
  const rows = seen.slice(0, MOST_ROWS).map((mark) => {
    const end = mark.end === null ? "" : moment(stampOf(mark.end));
    return [moment(stampOf(mark.time)), KINDS[mark.kind], mark.words, end];
  });
  const more = seen.length - rows.length;
  return el(
    "div",
    { class: "scroll", tabindex: 0, role: "group", "aria-label": "Marks" },
    table("Marks in view, newest first", ["Since", "Kind", "What", "Until"], rows),
    more > 0 ? el("p", {}, `${more} older ones are not in this table.`) : null,
  );
}
