// @ts-check
/** The last nights of one series as a small chart, with the two sides of the comparison marked in it. */

import { svg } from "../dom.js";
import { day, quantity, seconds } from "../format.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [720, 150, 76, 22, 14];
const NIGHTS = 30;

/** @typedef {import("../data.js").Shard} Shard */

/**
 * Its 30 nights up to the newer side, and the older side where that lies before them.
 *
 * @param {Shard} shard
 * @param {readonly string[]} marked the stamps of A and B
 */
export function historyChart(shard, marked) {
  const places = placesOf(shard, marked);
  const values = places.map((place) => shard.value[place] ?? NaN);
  const lows = places.map((place, at) => shard.low[place] ?? values[at] ?? NaN);
  const highs = places.map((place, at) => shard.high[place] ?? values[at] ?? NaN);
  const [min, max] = [Math.min(...lows), Math.max(...highs)];
  const x = (/** @type {number} */ at) => LEFT + ((at + 0.5) * (WIDTH - LEFT - 8)) / places.length;
  const y = (/** @type {number} */ value) =>
    max === min ? (HEIGHT - BOTTOM + TOP) / 2 : TOP + ((max - value) / (max - min)) * (HEIGHT - BOTTOM - TOP);
  const stamp = (/** @type {number} */ at) => shard.stamp[places[at] ?? 0] ?? "";
  const text = (/** @type {number} */ left, /** @type {number} */ top, /** @type {string} */ words, anchor = "end") =>
    svg("text", { x: left, y: top, "text-anchor": anchor }, words);
  const last = places.length - 1;
  const span = `${day(stamp(0))} to ${day(stamp(last))}, ${quantity(min, shard.unit)} to ${quantity(max, shard.unit)}`;
  return svg(
    "svg",
    { class: "history", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${shard.name}, ${span}` },
    ...marked.flatMap((wanted, side) => {
      const at = places.findIndex((_place, index) => stamp(index) === wanted);
      if (at < 0) return [];
      return [
        svg("line", { class: "side", x1: x(at), x2: x(at), y1: TOP, y2: HEIGHT - BOTTOM }),
        text(x(at), TOP - 3, side ? "B" : "A", "middle"),
      ];
    }),
    ...places.map((_place, at) =>
      svg("line", { class: "reach", x1: x(at), x2: x(at), y1: y(lows[at] ?? min), y2: y(highs[at] ?? max) }),
    ),
    svg("polyline", { points: values.map((value, at) => `${x(at)},${y(value)}`).join(" ") }),
    ...values.map((value, at) =>
      svg(
        "circle",
        { cx: x(at), cy: y(value), r: 3 },
        svg("title", {}, `${day(stamp(at))}: ${quantity(value, shard.unit)}`),
      ),
    ),
    text(LEFT - 8, y(max) + 4, quantity(max, shard.unit)),
    max === min ? null : text(LEFT - 8, y(min) + 4, quantity(min, shard.unit)),
    text(x(0), HEIGHT - 6, day(stamp(0)), "start"),
    last > 0 ? text(x(last), HEIGHT - 6, day(stamp(last))) : null,
  );
}

/** @param {Shard} shard @param {readonly string[]} marked */
function placesOf(shard, marked) {
  const known = shard.stamp.flatMap((_stamp, place) => (shard.value[place] === null ? [] : [place]));
  const newest = Math.max(...marked.map(seconds));
  const upto = known.filter((place) => seconds(shard.stamp[place] ?? "") <= newest);
  const older = upto.slice(0, -NIGHTS).filter((place) => marked.includes(shard.stamp[place] ?? ""));
  return [...older, ...upto.slice(-NIGHTS)];
}
