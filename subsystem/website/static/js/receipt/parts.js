// @ts-check
/** The parts of a receipt: facts, samples, operators and passes, each with a table. */

import { el, table } from "../dom.js";
import { flat } from "../facts.js";
import { counted, number, quantity } from "../format.js";
import { icicle } from "./icicle.js";
import { described, samplesPlot } from "./samples.js";
import { operatorTree } from "./tree.js";

/** @typedef {[string, number, number]} Operator name, calls, nanoseconds of all calls */

const MOST_ROWS = 500;

/**
 * Names with values; what is nested is told as a path.
 *
 * @param {Record<string, unknown>} facts
 */
export function factList(facts) {
  const rows = [...flat(facts)];
  return el(
    "dl",
    { class: "facts-list" },
    ...rows.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
  );
}

/** @param {readonly number[]} samples in ms */
export function samplesPart(samples) {
  const facts = described(samples);
  const far = facts.far
    ? ` ${counted(facts.far, "sample")} ${facts.far === 1 ? "lies" : "lie"} far above the others.`
    : "";
  const spread = facts.median > 0 ? ((facts.high - facts.low) / facts.median) * 100 : 0;
  return el(
    "div",
    {},
    el(
      "p",
      {},
      samples.length === 1
        ? `1 sample: ${quantity(facts.median, "ms")}.`
        : `${counted(samples.length, "sample")}, in the order in which they were taken. Median ${quantity(facts.median, "ms")}, ` +
          `half of them between ${quantity(facts.low, "ms")} and ${quantity(facts.high, "ms")} (${number(spread, 2)} % of the median; shaded), ` +
          `all between ${quantity(facts.least, "ms")} and ${quantity(facts.most, "ms")}.${far}`,
    ),
    samplesPlot(samples, "ms"),
    folded("Table of the samples", () =>
      table(
        "Samples in the order taken",
        ["Sample", "Time"],
        samples.slice(0, MOST_ROWS).map((value, at) => [String(at + 1), quantity(value, "ms")]),
        new Set([0, 1]),
      ),
    ),
  );
}

/** @param {readonly Operator[]} operators @param {number} runs */
export function operatorsPart(operators, runs) {
  const each = Math.max(1, runs);
  const perRun = operators.map(([name, calls, ns]) => /** @type {Operator} */ ([name, calls / each, ns / each]));
  const whole = operatorTree(perRun, "one run");
  return el(
    "div",
    {},
    el(
      "p",
      {},
      `Times of one run, the mean of ${counted(each, "profiled run")}. Profiling slows a run, so the sum is more than the value above. ` +
        "Operators that differ in their number alone stand below their common name; a box with parts opens with a click.",
    ),
    icicle(whole, "Operators by time"),
    folded("Table of the operators", () => timesTable("Operators, longest first", perRun, whole.ns)),
  );
}

/** @param {readonly [string, number][]} passes */
export function passesPart(passes) {
  const times = passes.map(([name, ns]) => /** @type {Operator} */ ([name, 0, ns]));
  const whole = operatorTree(times, "all passes");
  return el(
    "div",
    {},
    el("p", {}, "What the compiler's passes took. A pass that runs others holds their time too."),
    icicle(whole, "Passes by time"),
    folded("Table of the passes", () => timesTable("Passes in the order in which they ran first", times, whole.ns)),
  );
}

/** @param {string} caption @param {readonly Operator[]} rows @param {number} total */
function timesTable(caption, rows, total) {
  const called = rows.some(([, calls]) => calls > 0);
  const cells = rows
    .slice(0, MOST_ROWS)
    .map(([name, calls, ns]) => [
      name,
      quantity(ns, "ns"),
      total > 0 ? `${((100 * ns) / total).toFixed(1)} %` : "\u2013",
      ...(called ? [number(calls, 3)] : []),
    ]);
  return table(caption, ["Name", "Time", "Share", ...(called ? ["Calls"] : [])], cells, new Set([1, 2, 3]));
}

/**
 * Behind a summary; made when it is opened first.
 *
 * @param {string} words
 * @param {() => Node} make
 */
function folded(words, make) {
  const body = el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": words });
  return el(
    "details",
    {
      ontoggle: () => {
        if (!body.firstChild) body.append(make());
      },
    },
    el("summary", {}, words),
    body,
  );
}
