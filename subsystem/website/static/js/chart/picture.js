// @ts-check
/** A view as shapes, which become SVG or are painted on a canvas. Touches no page. */

import { placesInView } from "./axis.js";
import { fit } from "./fit.js";
import { padded, yLabels, ySplits } from "./ticks.js";
import { timeLabels } from "../format.js";
import { BAND_SCALES, levels } from "../points.js";

/** @typedef {import("./chart.js").View} View */
/** @typedef {import("./chart.js").ChartLine} ChartLine */
/** @typedef {{x: number, y: number, width: number, height: number}} Box */
/**
 * @typedef {{kind: "line", points: [number, number][], color: string, width: number, dash?: number[], alpha?: number}} Line
 * @typedef {{kind: "area", points: [number, number][], color: string, alpha: number}} Area
 * @typedef {{kind: "text", x: number, y: number, text: string, color: string, anchor: "start" | "middle" | "end",
 *   bold?: boolean, turned?: boolean}} Text
 * @typedef {Line | Area | Text} Shape
 * @typedef {{width: number, height: number, plot: Box, shapes: Shape[], clipped: Shape[],
 *   inside?: {x: number, y: number, picture: Picture}[]}} Picture
 *   `clipped` shapes are seen inside `plot` alone; `inside` are smaller pictures and where they stand
 * @typedef {{series: (place: number) => string, dash: (place: number) => number[], named: (name: string) => string}} Colors
 */

export const FONT_PX = 11;
const [LEFT, TOP, FOOT, TURNED_FOOT, UPRIGHT_PX, LETTER_PX] = [78, 20, 36, 84, 15, 6.4];
const MOST_BANDS = 3;
const DAY_S = 86400;
const STEPS = [1, 2, 3, 7, 14, 30.4375, 61, 91.5, 182.625, 365.25, 730.5, 1826];

/**
 * @param {View} view
 * @param {{width: number, height: number, small?: boolean}} size
 * @param {Colors} colors
 * @returns {Picture}
 */
export function pictureOf(view, { small = false, ...size }, colors) {
  const [first, end] = placesInView(view);
  const scales = [...new Set(view.lines.map((line) => line.scale))];
  const right = scales.length > 1 ? LEFT : 14;
  const labels = xLabels(view, size.width - LEFT - right, small);
  const foot = labels.some((label) => label.turned) ? TURNED_FOOT : FOOT;
  const plot = { x: LEFT, y: TOP, width: size.width - LEFT - right, height: size.height - TOP - foot };
  const [from, to] = view.range;
  const x = (/** @type {number} */ at) => plot.x + ((at - from) / (to - from || 1)) * plot.width;
  const ranges = new Map(
    scales.map((scale) => [scale, padded(fit(view, scale, first, end - 1) ?? [view.log ? 0.1 : 0, 1], view.log)]),
  );
  const y = (/** @type {string} */ scale, /** @type {number} */ value) => {
    const [min = 0, max = 1] = ranges.get(scale) ?? [];
    const share = view.log ? Math.log(value / min) / Math.log(max / min) : (value - min) / (max - min);
    return plot.y + plot.height * (1 - share);
  };
  const ground = plot.y + plot.height;
  /** @type {Shape[]} */
  const shapes = labels.flatMap(({ at, text, turned }) => [
    line([[x(at), ground], [x(at), ground + 4]], colors.named("--muted")),
    label(x(at) + (turned ? 4 : 0), ground + (turned ? 8 : 16), text, colors.named("--muted"), turned ? "start" : "middle", turned),
  ]);
  scales.forEach((scale, place) => {
    const [min = 0, max = 1] = ranges.get(scale) ?? [];
    const splits = ySplits(min, max, view.log, plot.height * (small ? 1.8 : 1));
    yLabels(splits, scale).forEach((text, at) => {
      const height = y(scale, splits[at] ?? 0);
      if (!place) shapes.push(line([[plot.x, height], [plot.x + plot.width, height]], colors.named("--line")));
      const side = place ? plot.x + plot.width + 6 : plot.x - 6;
      shapes.push(label(side, height + 4, text, colors.named("--muted"), place ? "start" : "end"));
    });
  });
  const clipped = [
    ...incidentShapes(view, plot, x, colors),
    ...(view.band && view.lines.length <= MOST_BANDS
      ? view.lines.flatMap((one) => bandShapes(view, one, x, y, colors))
      : []),
    ...[...view.lines].reverse().flatMap((one) => lineShapes(view, one, [first, end], x, y, plot, colors)),
  ];
  return { ...size, plot, shapes, clipped };
}

/** @param {[number, number][]} points @param {string} color @param {number} [width] @returns {Line} */
function line(points, color, width = 1) {
  return { kind: "line", points, color, width };
}

/**
 * @param {number} x
 * @param {number} y
 * @param {string} text
 * @param {string} color
 * @param {"start" | "middle" | "end"} anchor
 * @param {boolean} [turned]
 * @returns {Text}
 */
export function label(x, y, text, color, anchor, turned = false) {
  return { kind: "text", x, y, text, color, anchor, turned };
}

/** @param {Box} box @param {string} color @param {number} alpha @returns {Area} */
function area({ x, y, width, height }, color, alpha) {
  return { kind: "area", points: [[x, y], [x + width, y], [x + width, y + height], [x, y + height]], color, alpha };
}

/**
 * @param {View} view
 * @param {number} width
 * @param {boolean} small
 * @returns {{at: number, text: string, turned: boolean}[]}
 */
function xLabels(view, width, small) {
  const [from, to] = view.range;
  const { labels } = view.axis;
  if (!labels) {
    const step = DAY_S * (STEPS.find((days) => ((days * DAY_S) / (to - from)) * width > 62) ?? 3652.5);
    const first = Math.ceil(from / step) * step;
    const splits = Array.from({ length: Math.max(0, Math.floor((to - first) / step) + 1) }, (_one, at) => first + at * step);
    return timeLabels(null, splits).map((text, at) => ({ at: splits[at] ?? 0, text: text.split("\n").reverse().join("-"), turned: false }));
  }
  const slots = labels.map((text, at) => ({ at, text })).filter(({ at }) => at >= from && at <= to);
  const longest = Math.max(...slots.map(({ text }) => text.length)) * LETTER_PX + 10;
  const each = width / Math.max(1, to - from);
  const turned = !small && view.axis.kind === "commit" && each < longest;
  const every = Math.ceil((turned ? UPRIGHT_PX : longest) / each);
  return slots.filter((_slot, at) => at % every === 0).map((slot) => ({ ...slot, turned }));
}

/**
 * @param {View} view
 * @param {Box} plot
 * @param {(at: number) => number} x
 * @param {Colors} colors
 * @returns {Shape[]}
 */
function incidentShapes(view, plot, x, colors) {
  const [from, to] = view.range;
  const names = { worse: "--bad", better: "--good", changed: "--accent" };
  return view.marks.flatMap((mark) => {
    const begin = view.axis.positionOf(mark.time);
    const end = mark.end === null ? to : view.axis.positionOf(mark.end);
    if (mark.kind !== "incident" || !view.kinds.has("incident") || begin > to || end < from) return [];
    const color = colors.named(names[mark.way ?? "worse"]);
    const rule = line([[x(begin), plot.y], [x(begin), plot.y + plot.height]], color);
    const stretch = area({ ...plot, x: x(begin), width: x(end) - x(begin) }, color, 0.07);
    return view.lines.length > MOST_BANDS ? [rule] : [stretch, rule];
  });
}

/**
 * @param {View} view
 * @param {ChartLine} one
 * @param {(at: number) => number} x
 * @param {(scale: string, value: number) => number} y
 * @param {Colors} colors
 * @returns {Shape[]}
 */
function bandShapes(view, one, x, y, colors) {
  const { noise } = one.shard;
  return levels(one.shard).flatMap(({ from, to, level }) => {
    if (!noise || level <= 0) return [];
    const [left, right] = [x(view.axis.positionOf(from)), x(view.axis.positionOf(to))];
    const at = (/** @type {number} */ share) => y(one.scale, (level * Math.max(1e-3, share)) / one.divisor);
    const [top, foot] = [at(1 + BAND_SCALES * noise), at(1 - BAND_SCALES * noise)];
    return [area({ x: left, y: top, width: right - left, height: foot - top }, colors.series(one.color), 0.11)];
  });
}

/**
 * The line in its unbroken parts, a dot where such a part is one point, triangles for points outside the scale.
 *
 * @param {View} view
 * @param {ChartLine} one
 * @param {[number, number]} places
 * @param {(at: number) => number} x
 * @param {(scale: string, value: number) => number} y
 * @param {Box} plot
 * @param {Colors} colors
 * @returns {Shape[]}
 */
function lineShapes(view, one, [first, end], x, y, plot, colors) {
  const color = colors.series(one.color);
  /** @type {[number, number][][]} */
  const parts = [[]];
  for (let place = Math.max(0, first - 1); place <= Math.min(end, view.xs.length - 1); place += 1) {
    const value = one.values[place];
    if (value === null) parts.push([]);
    else if (value !== undefined) parts[parts.length - 1]?.push([x(view.xs[place] ?? 0), y(one.scale, value)]);
  }
  const width = one.mean ? 2.5 : one.faint || view.lines.length > 8 ? 1.1 : 1.6;
  const drawn = parts.filter((points) => points.length > 1);
  const points = one.faint || view.lines.length > 8 ? parts.filter((part) => part.length === 1).flat() : parts.flat();
  return [
    ...drawn.map((part) => ({ ...line(part, color, width), dash: colors.dash(one.color), alpha: one.faint ? 0.3 : 1 })),
    ...points.map(([left, top]) => area({ x: left - 2, y: top - 2, width: 4, height: 4 }, color, one.faint ? 0.3 : 1)),
    ...(one.faint || view.y === "all" ? [] : parts.flat().flatMap((point) => edgeShape(point, plot, color))),
  ];
}

/** @param {[number, number]} point @param {Box} plot @param {string} color @returns {Shape[]} */
function edgeShape([x, y], plot, color) {
  const foot = plot.y + plot.height;
  if (x < plot.x || x > plot.x + plot.width || (y >= plot.y - 1e-6 && y <= foot + 1e-6)) return [];
  const [tip, base] = y < plot.y ? [plot.y, plot.y + 8] : [foot, foot - 8];
  return [{ kind: "area", points: [[x, tip], [x - 5, base], [x + 5, base]], color, alpha: 1 }];
}
