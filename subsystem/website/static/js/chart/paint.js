// @ts-check
/** What is painted on the canvas beside the lines: noise bands, intervals, incidents, marks. */

import { clean } from "../dom.js";
import { color, seriesColor } from "../plot.js";
import { BAND_SCALES, levels } from "../points.js";

/** @typedef {import("../plot.js").Plot} Plot */
/** @typedef {import("./chart.js").View} View */
/** @typedef {import("../points.js").Mark} Mark */

/** As many marks of a kind are drawn through the chart; more are ticks at its foot. */
const MOST_MARKS = { tvm: 12, machine: 30, annotation: 30, incident: 30 };
/** Whose words come first where there is not room for all. */
const PRIORITY = ["incident", "annotation", "machine", "tvm"];
/** Bands, intervals and incidents of more series than these would hide one another. */
const MOST_BANDS = 3;
const STYLES = {
  tvm: { variable: "--muted", dash: [2, 3] },
  machine: { variable: "--warn", dash: [7, 4] },
  annotation: { variable: "--accent", dash: [] },
  incident: { variable: "--bad", dash: [] },
  worse: { variable: "--bad", dash: [] },
  better: { variable: "--good", dash: [] },
  changed: { variable: "--accent", dash: [] },
};

/**
 * Behind the lines: stretches of incidents, bands of noise around levels, intervals of points.
 *
 * @param {Plot} plot
 * @param {View} view
 */
export function paintBehind(plot, view) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const mark of view.lines.length <= MOST_BANDS ? view.marks : []) {
    if (mark.kind !== "incident" || !view.kinds.has("incident")) continue;
    const left = plot.valToPos(view.axis.positionOf(mark.time), "x", true);
    const right = mark.end === null ? bbox.left + bbox.width : plot.valToPos(view.axis.positionOf(mark.end), "x", true);
    ctx.globalAlpha = 0.07;
    ctx.fillStyle = color(STYLES[mark.way ?? "worse"].variable);
    ctx.fillRect(left, bbox.top, right - left, bbox.height);
  }
  if (view.band && view.lines.length <= MOST_BANDS) for (const line of view.lines) paintBand(plot, view.axis, line);
  ctx.restore();
}

/**
 * @param {Plot} plot
 * @param {import("./axis.js").Axis} axis
 * @param {import("./chart.js").ChartLine} line
 */
function paintBand(plot, axis, line) {
  const { ctx } = plot;
  const y = (/** @type {number} */ value) => plot.valToPos(value / line.divisor, line.scale, true);
  const { noise } = line.shard;
  for (const { from, to, level } of levels(line.shard)) {
    const [left = 0, right = 0] = [from, to].map((time) => plot.valToPos(axis.positionOf(time), "x", true));
    ctx.fillStyle = seriesColor(line.color);
    if (noise && level > 0) {
      const [top, foot] = [y(level * (1 + BAND_SCALES * noise)), y(level * Math.max(1e-3, 1 - BAND_SCALES * noise))];
      ctx.globalAlpha = 0.11;
      ctx.fillRect(left, top, right - left, foot - top);
    }
    ctx.globalAlpha = 0.5;
    ctx.fillRect(left, y(level) - 0.5, right - left, 1);
  }
  paintIntervals(plot, line, y);
}

/**
 * @param {Plot} plot
 * @param {import("./chart.js").ChartLine} line
 * @param {(value: number) => number} y
 */
function paintIntervals(plot, line, y) {
  const { ctx, data } = plot;
  const [first, last] = plot.series[0]?.idxs ?? [0, 0];
  if ((last ?? 0) - (first ?? 0) > plot.bbox.width / (6 * devicePixelRatio)) return;
  const log = plot.scales[line.scale]?.distr === 3;
  const foot = plot.bbox.top + plot.bbox.height;
  ctx.globalAlpha = 0.55;
  ctx.strokeStyle = seriesColor(line.color);
  ctx.lineWidth = devicePixelRatio;
  ctx.beginPath();
  for (let index = first ?? 0; index <= (last ?? -1); index += 1) {
    const at = line.places[index] ?? -1;
    const [low, high] = [line.shard.low[at], line.shard.high[at]];
    if (at < 0 || low === null || high === null || low === undefined || high === undefined || (log && high <= 0)) continue;
    const x = Math.round(plot.valToPos(data[0][index] ?? 0, "x", true)) + 0.5;
    ctx.moveTo(x, log && low <= 0 ? foot : y(low)); // one that reaches 0 goes out of the chart
    ctx.lineTo(x, y(high));
  }
  ctx.stroke();
}

/**
 * Over the lines: the marks, with what they mark above the chart as far as there is room.
 *
 * @param {Plot} plot
 * @param {View} view
 */
export function paintMarks(plot, view) {
  const { ctx, bbox } = plot;
  const [from, to] = [plot.scales["x"]?.min ?? 0, plot.scales["x"]?.max ?? 0];
  ctx.save();
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textBaseline = "alphabetic";
  ctx.textAlign = "left";
  const seen = view.marks.filter((mark) => {
    const x = view.axis.positionOf(mark.time);
    return view.kinds.has(mark.kind) && x >= from && x <= to && !(mark.kind === "tvm" && view.axis.kind === "commit");
  });
  const many = new Set(
    /** @type {Mark["kind"][]} */ (Object.keys(MOST_MARKS)).filter(
      (kind) => seen.filter((mark) => mark.kind === kind).length > MOST_MARKS[kind],
    ),
  );
  /** @type {[number, number][]} */
  const taken = [];
  seen.sort((a, b) => PRIORITY.indexOf(a.kind) - PRIORITY.indexOf(b.kind) || a.time - b.time);
  for (const mark of seen) {
    const style = STYLES[mark.way ?? mark.kind];
    const x = Math.round(plot.valToPos(view.axis.positionOf(mark.time), "x", true)) + 0.5;
    const short = many.has(mark.kind);
    ctx.strokeStyle = color(style.variable);
    ctx.fillStyle = color(style.variable);
    ctx.lineWidth = devicePixelRatio;
    ctx.globalAlpha = short || mark.kind === "tvm" ? 0.45 : 0.8;
    ctx.setLineDash(short ? [] : style.dash.map((length) => length * devicePixelRatio));
    ctx.beginPath();
    ctx.moveTo(x, short ? bbox.top + bbox.height - 5 * devicePixelRatio : bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.globalAlpha = 1;
    if (!short) label(plot, mark, x, taken);
  }
  ctx.restore();
}

/**
 * The words of a mark above it, on its left where the right is full; none where another's words are.
 *
 * @param {Plot} plot
 * @param {Mark} mark
 * @param {number} x
 * @param {[number, number][]} taken
 */
function label(plot, mark, x, taken) {
  const { ctx, bbox } = plot;
  const room = 130 * devicePixelRatio;
  let words = clean(mark.kind === "tvm" ? `TVM ${mark.words}` : mark.words);
  while (words.length > 4 && ctx.measureText(words).width > room) words = `${words.slice(0, -3).trimEnd()}…`;
  const width = ctx.measureText(words).width;
  const [first, end] = [bbox.left, bbox.left + bbox.width + 8 * devicePixelRatio];
  const left = [x, x - width].find(
    (place) =>
      place >= first && place + width <= end && taken.every(([from, to]) => place > to || place + width < from),
  );
  if (left === undefined) return;
  taken.push([left - 8 * devicePixelRatio, left + width + 8 * devicePixelRatio]);
  ctx.fillText(words, left, bbox.top - 6 * devicePixelRatio);
}
