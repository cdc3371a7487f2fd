// @ts-check
/** Many series over nights on one canvas: zoom, move, point at values with mouse, finger or arrow keys. */

import { nearest } from "./chart_nearest.js";
import { options } from "./chart_options.js";
import { el } from "./dom.js";
import { addGestures } from "./gestures.js";
import { seriesColor } from "./palette.js";
import { UPlot } from "./plot.js";

/** @typedef {import("./data.js").Entry} Entry */
/** @typedef {import("./data.js").Shard} Shard */
/** @typedef {import("./points.js").Value} Value */
/** @typedef {import("./gestures.js").Range} Range */
/**
 * @typedef {{
 *   entry: Entry, shard: Shard, values: Value[], places: number[], divisor: number, baseline: number | null,
 *   scale: string,
 * }} ChartLine `scale` is its unit, or "ratio"; values are divided by `divisor`
 * @typedef {{
 *   lines: ChartLine[], xs: number[], log: boolean, relative: boolean, band: boolean, kinds: Set<string>,
 *   marks: import("./points.js").Mark[], range: Range,
 * }} View
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
  /** @type {import("./plot.js").Plot | null} */
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
      const [x, y] = [plot.valToPos(view.xs[place.index] ?? 0, "x"), plot.valToPos(value, line.scale)];
      dot.hidden = x < 0 || x > plot.over.clientWidth;
      dot.style.transform = `translate(${x}px, ${y}px)`;
      dot.style.borderColor = seriesColor(place.line);
    }
  };

  /** @param {View} next */
  const show = (next) => {
    const old = view;
    view = next;
    if (plot && old && sameShape(old, next)) {
      plot.batch((/** @type {import("./plot.js").Plot} */ made) => {
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

  /** @param {import("./plot.js").Plot} made */
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
      return { x: x + plot.over.offsetLeft, y: plot.valToPos(value, line.scale) + plot.over.offsetTop };
    },
    /** The plot itself, for measurements of its speed. */
    get plot() {
      return plot;
    },
  };
}

/** @param {View} view @returns {import("./plot.js").PlotData} */
function aligned(view) {
  return /** @type {import("./plot.js").PlotData} */ ([view.xs, ...view.lines.map((line) => line.values)]);
}

/** Whether the same plot can show both, with other values at most. @param {View} a @param {View} b */
function sameShape(a, b) {
  return (
    a.log === b.log &&
    a.xs === b.xs &&
    a.lines.length === b.lines.length &&
    a.lines.every((line, place) => line.shard === b.lines[place]?.shard && line.scale === b.lines[place]?.scale)
  );
}
