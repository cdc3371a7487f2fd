// @ts-check
/** How an axis looks on which nights, or commits, stand one beside the other. */

import { commitAxis as commits, nightAxis as nights } from "./ordinal.js";
import { color } from "../plot.js";

/** @typedef {import("./axis.js").Axis} Axis */

const [LABEL_PX, TURNED_PX, LETTER_PX] = [12, 15, 6.6];

/** @param {readonly import("../data.js").Shard[]} shards @returns {Axis} */
export function nightAxis(shards) {
  const axis = nights(shards);
  return { ...axis, drawn: (small) => drawnAs(axis.labels, { turned: false, small }) };
}

/** Its labels stand upright where they do not fit. @param {readonly import("../data.js").Shard[]} shards @returns {Axis} */
export function commitAxis(shards) {
  const axis = commits(shards);
  return { ...axis, drawn: (small) => drawnAs(axis.labels, { turned: !small, small }) };
}

/**
 * A tick at each position where there is room for it, and as many labels as fit.
 *
 * @param {string[]} labels
 * @param {{turned: boolean, small: boolean}} how
 * @returns {import("../plot.js").PlotAxis}
 */
function drawnAs(labels, { turned, small }) {
  const longest = Math.max(...labels.map((label) => label.length)) * LETTER_PX + LABEL_PX;
  const fits = (/** @type {import("../plot.js").Plot} */ plot) => pixelsEach(plot) >= longest;
  const upright = (/** @type {import("../plot.js").Plot} */ plot) => turned && !fits(plot);
  return {
    stroke: () => color("--muted"),
    grid: { show: false },
    ticks: { show: true, size: 4, width: 1, stroke: () => color("--muted") },
    rotate: (plot) => (upright(plot) ? -90 : 0),
    size: (plot) => (upright(plot) ? longest + LABEL_PX : small ? 24 : 40),
    splits: (plot, _axis, min, max) => {
      const every = Math.ceil(3 / Math.max(0.001, pixelsEach(plot)));
      const first = Math.ceil(Math.max(0, min) / every) * every;
      const count = Math.max(0, Math.floor((Math.min(labels.length - 1, max) - first) / every) + 1);
      return Array.from({ length: count }, (_one, at) => first + at * every);
    },
    filter: (_plot, splits) => splits,
    values: (plot, splits) => {
      const step = (splits[1] ?? 0) - (splits[0] ?? 0) || 1;
      const each = Math.ceil((upright(plot) ? TURNED_PX : longest) / (pixelsEach(plot) * step));
      return splits.map((slot, at) => (at % each ? "" : (labels[slot] ?? "")));
    },
  };
}

/** The room of one position. @param {import("../plot.js").Plot} plot */
function pixelsEach(plot) {
  const { min, max } = plot.scales["x"] ?? {};
  return (plot.width - 100) / Math.max(1, (max ?? 1) - (min ?? 0));
}
