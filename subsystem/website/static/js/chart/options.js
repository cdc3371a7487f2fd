// @ts-check
/** How the chart of series is drawn: its scales, axes, strokes; which point is meant; what it tells. */

import { fit } from "./fit.js";
import { heightOf, paintOutside } from "./outside.js";
import { paintBehind, paintMarks } from "./paint.js";
import { color, seriesColor, seriesDash, utcDate } from "../plot.js";
import { lowerBound } from "../points.js";
import { timeLabels } from "../format.js";
import { padded, yLabels, ySplits } from "./ticks.js";

/** @typedef {import("./chart.js").View} View */
/** @typedef {import("./chart.js").Told} Told */
/** @typedef {import("./chart.js").Range} Range */

const TOP_PX = 22;
/** Over shorter times than this the marks of the axis tell hours too, which need more room. */
const HOURS_TOLD_S = 16 * 86400;
/** From so many values in view on, lines are one pixel of the screen wide and never dashed. */
const DENSE = 8000;
/** How much of the members of a group is seen. */
const FAINT = 0.3;

/**
 * @param {View} view
 * @param {{width: number, height: number}} size
 * @param {Told} told
 * @param {() => View} current the view at the time of painting
 * @param {(plot: import("../plot.js").Plot) => void} pick
 * @returns {import("../plot.js").PlotOptions}
 */
export function options(view, size, told, current, pick) {
  const scales = [...new Set(view.lines.map((line) => line.scale))];
  return {
    ...size,
    padding: [TOP_PX, 14, 0, 4],
    legend: { show: false },
    tzDate: utcDate,
    focus: { alpha: 1 },
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: true, y: false, setScale: false },
      bind: { dblclick: () => () => (told.onRange(null), null) },
    },
    scales: {
      x: { time: !view.axis.drawn, min: view.range[0], max: view.range[1] },
      ...Object.fromEntries(scales.map((scale) => [scale, yScale(scale, view.log, current)])),
    },
    axes: [
      view.axis.drawn?.(false) ?? {
        stroke: () => color("--muted"),
        grid: { stroke: () => color("--line"), width: 1 },
        ticks: { show: false },
        space: (_plot, _axis, min, max) => (max - min < HOURS_TOLD_S ? 104 : 56),
        values: timeLabels,
      },
      ...scales.map((scale, place) => yAxis(scale, place, view.log)),
    ],
    series: [
      {},
      ...view.lines.map((line) => ({
        scale: line.scale,
        stroke: () => seriesColor(line.color),
        alpha: line.faint ? FAINT : 1,
        points: {
          size: 5,
          fill: () => seriesColor(line.color),
          ...(view.lines.length > 8 || line.faint ? { show: false } : {}),
        },
      })),
    ],
    hooks: {
      setScale: [(plot, key) => key === "x" && chooseStrokes(plot, current())],
      drawClear: [(plot) => paintBehind(plot, current())],
      draw: [(plot) => (paintMarks(plot, current()), paintOutside(plot, current())), told.onDrawn],
      setCursor: [pick],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 5) return;
          const range = /** @type {Range} */ ([plot.posToVal(left, "x"), plot.posToVal(left + width, "x")]);
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          told.onRange(range);
        },
      ],
      ready: [
        (plot) => {
          /** @type {{x: number, y: number} | null} */
          let down = null;
          plot.over.addEventListener("pointerdown", (event) => (down = { x: event.clientX, y: event.clientY }));
          plot.over.addEventListener("click", (event) => {
            if (down && Math.hypot(event.clientX - down.x, event.clientY - down.y) > 4) return;
            const box = plot.over.getBoundingClientRect();
            const place = nearest(plot, current(), event.clientX - box.left, event.clientY - box.top);
            if (place) told.onPin(place);
          });
        },
      ],
    },
  };
}

/**
 * Browsers draw lines of one pixel thirty times faster than wider or dashed ones (2 s against 65 ms for 50 series of
 * 10,000 nights, software rendering), and among so many values neither width nor dashes could be seen.
 *
 * @param {import("../plot.js").Plot} plot
 * @param {View} view
 */
function chooseStrokes(plot, view) {
  const { min = 0, max = 0 } = plot.scales["x"] ?? {};
  const nights = lowerBound(plot.data[0], max ?? 0) - lowerBound(plot.data[0], min ?? 0);
  const count = plot.series.length - 1;
  const dense = nights * count > DENSE;
  plot.series.forEach((series, place) => {
    const line = view.lines[place - 1];
    if (!line) return;
    series.width = dense ? 1 / devicePixelRatio : line.mean ? 2.5 : count > 8 || line.faint ? 1.25 : 1.75;
    series.dash = dense ? [] : seriesDash(line.color);
  });
}

/** @param {string} scale @param {boolean} log @param {() => View} current */
function yScale(scale, log, current) {
  return {
    distr: /** @type {1 | 3} */ (log ? 3 : 1),
    /** @type {(plot: import("../plot.js").Plot) => Range} */
    range: (plot) => {
      const [first, last] = plot.series[0]?.idxs ?? [0, 0];
      const extent = fit(current(), scale, first ?? 0, last ?? 0);
      return extent ? padded(extent, log) : log ? [0.1, 10] : [0, 1];
    },
  };
}

/**
 * @param {string} scale
 * @param {number} place
 * @param {boolean} log
 * @returns {import("../plot.js").PlotAxis}
 */
function yAxis(scale, place, log) {
  return {
    scale,
    side: place === 0 ? 3 : 1,
    stroke: () => color("--muted"),
    grid: { show: place === 0, stroke: () => color("--line"), width: 1 },
    ticks: { show: false },
    size: 76,
    splits: (plot, _axis, min, max) => ySplits(min, max, log, plot.height - 70),
    filter: (_plot, splits) => splits,
    values: (_plot, splits) => yLabels(splits, scale),
  };
}

/**
 * The point nearest to a place in the plot: of each line the night nearest in time, of these the nearest in height.
 *
 * @param {import("../plot.js").Plot} plot
 * @param {View} view
 * @param {number} left
 * @param {number} top
 * @returns {import("./chart.js").Place | null}
 */
export function nearest(plot, view, left, top) {
  const around = plot.posToIdx(left);
  /** @type {import("./chart.js").Place | null} */
  let best = null;
  let least = Infinity;
  view.lines.forEach((line, place) => {
    const index = nearestNight(line, around);
    const value = index === null ? null : line.values[index];
    if (index === null || typeof value !== "number") return;
    const x = plot.valToPos(view.xs[index] ?? 0, "x");
    const distance = Math.abs(heightOf(plot, value, line.scale) - top) + 2 * Math.max(0, Math.abs(x - left) - 6);
    if (distance < least) [least, best] = [distance, { line: place, index }];
  });
  return best;
}

/**
 * The place with a value of this line that is nearest to `around`; null where there is none.
 *
 * @param {import("./chart.js").ChartLine} line
 * @param {number} around
 */
export function nearestNight(line, around) {
  for (let away = 0; away < line.places.length; away += 1) {
    for (const index of [around - away, around + away]) {
      if ((line.places[index] ?? -1) >= 0 && typeof line.values[index] === "number") return index;
    }
  }
  return null;
}
