// @ts-check
/** Raw samples as a plot, in the order in which they were taken, with their median; and what to read from them. */

import { el } from "../dom.js";
import { color, UPlot } from "../plot.js";
import { median } from "../points.js";
import { evenSplits, tickLabels } from "../format.js";

const HEIGHT_PX = 240;

/**
 * Median, quartiles, extremes of `samples`, and how many lie more than three interquartile ranges above the upper one.
 *
 * @param {readonly number[]} samples
 */
export function described(samples) {
  const sorted = [...samples].sort((a, b) => a - b);
  const at = (/** @type {number} */ share) =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
  const [low, high] = [at(0.25), at(0.75)];
  const far = sorted.filter((value) => value > high + 3 * (high - low)).length;
  return { median: median(samples) ?? NaN, low, high, least: at(0), most: sorted[sorted.length - 1] ?? NaN, far };
}

/**
 * @param {readonly number[]} samples
 * @param {string} unit
 */
export function samplesPlot(samples, unit) {
  const host = el("div", {
    class: "plot",
    role: "img",
    "aria-label": `${samples.length} samples; their values are in the table below`,
  });
  const facts = described(samples);
  /** @type {import("../plot.js").Plot | null} */
  let plot = null;
  const make = () => {
    plot?.destroy();
    plot = new UPlot(
      {
        width: Math.max(240, host.clientWidth),
        height: HEIGHT_PX,
        padding: [10, 14, 0, 4],
        legend: { show: false },
        cursor: { show: false },
        scales: {
          x: { time: false, range: () => [0.5, samples.length + 0.5] },
          y: { range: (_plot, min, max) => padded(min, max) },
        },
        axes: [
          {
            stroke: () => color("--muted"),
            grid: { show: false },
            ticks: { show: false },
            incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
          },
          {
            stroke: () => color("--muted"),
            grid: { stroke: () => color("--line"), width: 1 },
            ticks: { show: false },
            size: 80,
            splits: (_plot, _axis, min, max) => evenSplits(min, max, 4),
            values: (_plot, splits) => {
              const ticks = tickLabels(splits, unit);
              return ticks.labels.map((label) => `${label} ${ticks.unit}`);
            },
          },
        ],
        series: [
          {},
          {
            stroke: () => color("--series-0"),
            paths: () => null,
            points: { show: true, size: 7, fill: () => color("--series-0"), width: 0 },
          },
        ],
        hooks: {
          drawClear: [
            (made) => {
              const { ctx, bbox } = made;
              const y = (/** @type {number} */ value) => made.valToPos(value, "y", true);
              ctx.save();
              ctx.fillStyle = color("--series-0");
              ctx.globalAlpha = 0.12;
              ctx.fillRect(bbox.left, y(facts.high), bbox.width, y(facts.low) - y(facts.high));
              ctx.globalAlpha = 0.8;
              ctx.fillRect(bbox.left, y(facts.median) - 0.5, bbox.width, devicePixelRatio);
              ctx.restore();
            },
          ],
        },
      },
      [samples.map((_value, index) => index + 1), [...samples]],
      host,
    );
  };
  new ResizeObserver(() => {
    if (plot) plot.setSize({ width: Math.max(240, host.clientWidth), height: HEIGHT_PX });
    else make();
  }).observe(host);
  document.addEventListener("themechange", () => plot?.redraw(false, true));
  return host;
}

/** @param {number} min @param {number} max @returns {[number, number]} */
function padded(min, max) {
  const pad = max > min ? (max - min) * 0.12 : Math.abs(max) * 0.05 || 1;
  return [min - pad, max + pad];
}
