// @ts-check
/** Many series over nights on one canvas: zoom, move, point at values with mouse, finger or arrow keys. */

import { nearest, options } from "./options.js";
import { heightOf, pointsOutside } from "./outside.js";
import { el } from "../dom.js";
import { seriesColor, UPlot } from "../plot.js";

/** @typedef {import("../data.js").Entry} Entry */
/** @typedef {import("../data.js").Shard} Shard */
/** @typedef {import("../points.js").Value} Value */
/** @typedef {import("./axis.js").Range} Range */
/**
 * @typedef {{
 *   entry: Entry, shard: Shard, values: Value[], places: number[], divisor: number, baseline: number | null,
 *   scale: string, color: number, faint: boolean, mean: Mean | null,
 * }} ChartLine `scale` is its unit, or "ratio"; values are divided by `divisor`
 * @typedef {{of: number, counts: number[]}} Mean of so many series, and how many of them had a value at each point
 * @typedef {{
 *   lines: ChartLine[], axis: import("./axis.js").Axis, xs: number[], log: boolean, relative: boolean, y: string, group: string, multiples: boolean, band: boolean, kinds: Set<string>,
 *   marks: import("../points.js").Mark[], range: Range, period: Range,
 * }} View `range` is what is in view as positions on its axis, `period` as seconds since 1970
 * @typedef {{line: number, index: number}} Place a point: which line, and where on the axis
 * @typedef {{
 *   onRange: (range: Range | null) => void, onPoint: (place: Place | null) => void, onPin: (place: Place) => void,
 *   onDrawn: () => void,
 * }} Told
 */

/**
 * A chart in `host`, which `show` fills.
 *
 * @param {HTMLElement} host
 * @param {Told} told
 */
export function makeChart(host, told) {
  /** @type {import("../plot.js").Plot | null} */
  let plot = null;
  /** @type {View | null} */
  let view = null;
  /** @type {Place | null} */
  let pointed = null;
  const dot = el("div", { class: "chart-dot", hidden: true });
  const size = () => ({ width: Math.max(240, host.clientWidth), height: Math.max(160, host.clientHeight) });

  /** @param {Place | null} place */
  const pointAt = (place) => {
    pointed = place;
    const line = place && view?.lines[place.line];
    const value = place && line ? line.values[place.index] : null;
    dot.hidden = !plot || !view || !place || value === null || value === undefined;
    if (plot && view && line && place && typeof value === "number") {
      const [x, y] = [plot.valToPos(view.xs[place.index] ?? 0, "x"), heightOf(plot, value, line.scale)];
      dot.hidden = x < 0 || x > plot.over.clientWidth;
      dot.style.transform = `translate(${x}px, ${y}px)`;
      dot.style.borderColor = seriesColor(line.color);
    }
  };

  /** @param {View} next */
  const show = (next) => {
    const old = view;
    view = next;
    if (plot && old && sameShape(old, next)) {
      plot.batch((/** @type {import("../plot.js").Plot} */ made) => {
        if (!old.lines.every((line, place) => line.values === next.lines[place]?.values))
          made.setData(aligned(next), false);
        made.setScale("x", { min: next.range[0], max: next.range[1] });
      });
    } else {
      plot?.destroy();
      plot = new UPlot(
        options(next, size(), told, () => view ?? next, pick),
        aligned(next),
        host,
      );
      plot.over.append(dot);
      addGestures(plot, told.onRange);
    }
    plot.redraw(false, true);
  };

  /** @param {import("../plot.js").Plot} made */
  const pick = (made) => {
    const { left = -1, top = -1 } = made.cursor;
    told.onPoint(view && left >= 0 ? nearest(made, view, left, top) : null);
  };

  new ResizeObserver(() => {
    plot?.setSize(size());
    pointAt(pointed);
  }).observe(host);
  document.addEventListener("themechange", () => plot?.redraw(false, true));
  return {
    show,
    pointAt,
    /** Where a point is in the host, in pixels; null where it is not in view. @param {Place} place */
    positionOf(place) {
      const line = view?.lines[place.line];
      const value = line?.values[place.index];
      if (!plot || !view || !line || typeof value !== "number") return null;
      const x = plot.valToPos(view.xs[place.index] ?? 0, "x");
      if (x < -1 || x > plot.over.clientWidth + 1) return null;
      return { x: x + plot.over.offsetLeft, y: heightOf(plot, value, line.scale) + plot.over.offsetTop };
    },
    /** The points of a line that are in view, in the host's pixels. @param {number} at */
    pathOf(at) {
      const line = view?.lines[at];
      const made = plot;
      if (!made || !view || !line) return [];
      const [from, to] = view.range;
      return view.xs.flatMap((time, index) => {
        const value = line.values[index];
        if (typeof value !== "number" || time < from || time > to) return [];
        const { offsetLeft, offsetTop } = made.over;
        return [{ x: made.valToPos(time, "x") + offsetLeft, y: heightOf(made, value, line.scale) + offsetTop }];
      });
    },
    /** How many points in view lie outside their scale. */
    outside() {
      return plot && view ? pointsOutside(plot, view).length : 0;
    },
    /** Where the lines are drawn, in the host's pixels. */
    room() {
      const over = plot?.over;
      return {
        left: over?.offsetLeft ?? 0,
        top: over?.offsetTop ?? 0,
        width: over?.clientWidth ?? 0,
        height: over?.clientHeight ?? 0,
      };
    },
    /** The plot itself, for measurements of its speed. */
    get plot() {
      return plot;
    },
  };
}

/** @param {View} view @returns {import("../plot.js").PlotData} */
function aligned(view) {
  return /** @type {import("../plot.js").PlotData} */ ([view.xs, ...view.lines.map((line) => line.values)]);
}

/** Whether the same plot can show both, with other values at most. @param {View} a @param {View} b */
function sameShape(a, b) {
  return (
    a.log === b.log &&
    a.y === b.y &&
    a.xs === b.xs &&
    a.lines.length === b.lines.length &&
    a.lines.every((line, place) => line.shard === b.lines[place]?.shard && line.scale === b.lines[place]?.scale)
  );
}

/**
 * Moving the time axis: shift or middle button drags it, the wheel with ctrl zooms, one finger drags, two zoom.
 *
 * @param {import("../plot.js").Plot} plot
 * @param {(range: Range) => void} onRange called at the end of a movement
 */
function addGestures(plot, onRange) {
  const { over } = plot;
  /** @type {Map<number, number>} */
  const fingers = new Map();
  /** @type {{range: Range, center: number, spread: number} | null} */
  let begun = null;
  let moved = false;

  const shown = () => /** @type {Range} */ ([plot.scales["x"]?.min ?? 0, plot.scales["x"]?.max ?? 1]);
  const middle = () => [...fingers.values()].reduce((sum, x) => sum + x, 0) / fingers.size;
  const spread = () => (fingers.size < 2 ? 0 : Math.max(...fingers.values()) - Math.min(...fingers.values()));
  const begin = () => {
    begun = fingers.size ? { range: shown(), center: middle(), spread: spread() } : null;
  };

  over.style.touchAction = "pan-y";
  over.addEventListener(
    "mousedown",
    (event) => {
      if (event.shiftKey || event.button === 1) event.stopImmediatePropagation();
    },
    { capture: true },
  );
  over.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch" && !event.shiftKey && event.button !== 1) return;
    if (event.pointerType !== "touch") event.preventDefault(); // a tap has to end as a click
    over.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, event.clientX);
    moved = false;
    begin();
  });
  over.addEventListener("pointermove", (event) => {
    if (!begun || !fingers.has(event.pointerId)) return;
    fingers.set(event.pointerId, event.clientX);
    const [from, to] = begun.range;
    const perPixel = (to - from) / Math.max(1, over.clientWidth);
    const scale = begun.spread > 20 ? begun.spread / Math.max(20, spread()) : 1;
    const held = from + (begun.center - over.getBoundingClientRect().left) * perPixel;
    const shift = (middle() - begun.center) * perPixel * scale;
    if (!moved && Math.abs(middle() - begun.center) < 4 && scale === 1) return;
    moved = true;
    plot.setScale("x", { min: held - (held - from) * scale - shift, max: held + (to - held) * scale - shift });
  });
  for (const end of /** @type {const} */ (["pointerup", "pointercancel"])) {
    over.addEventListener(end, (event) => {
      if (!fingers.delete(event.pointerId)) return;
      begin();
      if (moved && !fingers.size) onRange(shown());
    });
  }

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let settled;
  over.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
      event.preventDefault();
      const [from, to] = shown();
      const turn = event.deltaY || event.deltaX;
      if (event.shiftKey) {
        const shift = ((to - from) * Math.sign(turn)) / 10;
        plot.setScale("x", { min: from + shift, max: to + shift });
      } else {
        const held = plot.posToVal(event.clientX - over.getBoundingClientRect().left, "x");
        const scale = turn > 0 ? 1.25 : 0.8;
        plot.setScale("x", { min: held - (held - from) * scale, max: held + (to - held) * scale });
      }
      clearTimeout(settled);
      settled = setTimeout(() => onRange(shown()), 200);
    },
    { passive: false },
  );
}
