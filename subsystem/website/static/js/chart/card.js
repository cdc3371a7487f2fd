// @ts-check
/** The card of a point: its value, how it moved, where and by what it was measured, its receipt. */

import { root } from "../data.js";
import { el } from "../dom.js";
import { change, counted, interval, moment, quantity } from "../format.js";
import { seriesColor } from "../plot.js";
import { fromPrevious } from "../points.js";

/**
 * What the card says of one point; `at` is its place in the shard.
 *
 * @param {import("./chart.js").ChartLine} line
 * @param {number} at
 */
export function pointFacts(line, at) {
  const { shard } = line;
  const value = shard.value[at] ?? null;
  const [tvm, machine, samples] = [shard.tvm[at], shard.machine[at], shard.samples[at]];
  return {
    stamp: shard.stamp[at] ?? "",
    value: quantity(value, shard.unit),
    interval: interval(shard.low[at], shard.high[at], shard.unit),
    previous: change(fromPrevious(shard, at)),
    baseline: change(value !== null && line.baseline ? value / line.baseline : null),
    tvm: tvm === null || tvm === undefined ? "unknown" : shard.tvms[tvm] || "unknown",
    machine: machine === null || machine === undefined ? "unknown" : shard.machines[machine] || "unknown",
    samples: samples ? counted(samples, "sample") : "",
  };
}

/**
 * The address of a point's receipt.
 *
 * @param {string} stamp
 * @param {string} id of the series
 */
export function receiptUrl(stamp, id) {
  return `${root()}receipt.html#night=${encodeURIComponent(stamp)}&series=${encodeURIComponent(id)}`;
}

/**
 * @param {import("./chart.js").ChartLine} line
 * @param {number} at
 * @param {(() => void) | null} onClose given where the card is pinned
 */
export function pointCard(line, at, onClose) {
  const facts = pointFacts(line, at);
  const swatch = el("span", { class: "swatch" });
  swatch.style.backgroundColor = seriesColor(line.color);
  const row = (/** @type {string} */ name, /** @type {string} */ text) => [el("dt", {}, name), el("dd", {}, text)];
  return [
    el("p", { class: "card-name" }, swatch, el("bdi", {}, line.entry.name), onClose ? closeButton(onClose) : null),
    el("p", { class: "card-value" }, el("strong", {}, facts.value), facts.interval ? ` 95 %: ${facts.interval}` : ""),
    el(
      "dl",
      {},
      ...row("from the night before", facts.previous),
      ...row("from the baseline", facts.baseline),
      ...row("night", moment(facts.stamp)),
      ...row("TVM", facts.tvm),
      ...(line.mean ? row("mean of", `${line.mean.counts[at]} of ${counted(line.mean.of, "series", "series")}`) : []),
      ...(line.mean ? [] : row("machine", shortened(facts.machine))),
      ...(facts.samples ? row("measured", facts.samples) : []),
    ),
    onClose
      ? el(
          "p",
          { class: "card-links" },
          line.mean ? null : el("a", { href: receiptUrl(facts.stamp, line.entry.id) }, "Receipt of this point"),
          " ",
          el("a", { href: `${root()}nights/${facts.stamp}.html` }, "This night"),
        )
      : el("p", { class: "card-hint" }, "Click or Enter: keep this card, with links"),
  ];
}

/** @param {() => void} onClose */
function closeButton(onClose) {
  return el("button", { type: "button", class: "card-close", "aria-label": "Close this card", onclick: onClose }, "×");
}

/** Its beginning; the tables and the receipt have all of it. @param {string} text */
function shortened(text) {
  return text.length > 44 ? `${text.slice(0, 42)}…` : text;
}
