// @ts-check
/** A small chart for each series, or for each group: each has its own scale, all have the same nights. */

import { placesInView } from "../chart/axis.js";
import { COLORS, svgOf } from "../chart/drawing.js";
import { pictureOf } from "../chart/picture.js";
import { el, svg } from "../dom.js";
import { change, moment, quantity } from "../format.js";
import { marks } from "../points.js";
import { changeState } from "../state.js";

/** @typedef {import("../chart/chart.js").View} View */
/** @typedef {import("../chart/chart.js").ChartLine} ChartLine */

const [NARROWEST_PX, HEIGHT_PX, GAP_PX] = [300, 170, 16];

/**
 * The views of the small charts, each of a series or of a group's mean with its members.
 *
 * @param {View} view
 * @returns {View[]}
 */
export function partsOf(view) {
  if (!view.group) return view.lines.map((line) => partOf(view, [line]));
  return view.lines.flatMap((line, at) => {
    if (!line.mean) return [];
    const next = view.lines.findIndex((one, place) => place > at && one.mean);
    return [partOf(view, view.lines.slice(at, next < 0 ? undefined : next))];
  });
}

/** @param {View} view @param {ChartLine[]} lines */
function partOf(view, lines) {
  return { ...view, lines, marks: marks(lines.map((line) => line.shard)) };
}

/**
 * Charts in `host`, which `show` fills: a pointer over one, or the arrow keys, tell the values of a night on all.
 *
 * @param {HTMLElement} host
 */
export function makeMultiples(host) {
  /** @type {View | null} */
  let view = null;
  /** @type {{part: View, figure: HTMLElement, said: HTMLElement, rule: SVGLineElement, x: (place: number) => number}[]} */
  let charts = [];
  let [place, current, width, drawnFor] = [-1, 0, 0, 0];

  const draw = () => {
    if (!view || !host.clientWidth) return;
    drawnFor = host.clientWidth;
    const columns = Math.max(1, Math.floor((host.clientWidth + GAP_PX) / (NARROWEST_PX + GAP_PX)));
    width = Math.floor((host.clientWidth + GAP_PX) / columns) - GAP_PX;
    charts = partsOf(view).map((part) => chartOf(part, Math.max(200, width)));
    host.replaceChildren(...charts.map(({ figure }) => figure));
    tell();
  };

  const tell = () => {
    charts.forEach(({ part, figure, said, rule, x }, at) => {
      const [line] = part.lines;
      if (!line) return;
      figure.classList.toggle("is-current", at === current && document.activeElement === host);
      said.textContent = place < 0 ? wordsOf(line, lastPlace(part, line)) : wordsOf(line, place);
      rule.setAttribute("visibility", place < 0 ? "hidden" : "visible");
      for (const end of ["x1", "x2"]) rule.setAttribute(end, String(x(place)));
    });
  };

  /** @param {number} next */
  const moveTo = (next) => {
    if (!view) return;
    const [first, end] = placesInView(view);
    place = Math.max(first, Math.min(end - 1, next));
    tell();
  };

  const open = () => {
    const id = charts[current]?.part.lines.filter((line) => !line.mean).map((line) => line.entry.id);
    if (id?.length) changeState({ series: id.join(","), multiples: "", group: "" });
  };

  host.addEventListener("pointermove", (event) => {
    const at = charts.findIndex(({ figure }) => event.target instanceof Node && figure.contains(event.target));
    const box = charts[at]?.figure.querySelector("svg")?.getBoundingClientRect();
    if (!view || !box) return;
    const left = (event.clientX - box.left) / (box.width / Math.max(200, width));
    const [first, end] = placesInView(view);
    let nearest = first;
    for (let one = first; one < end; one += 1) {
      const x = charts[at]?.x ?? (() => 0);
      if (Math.abs(x(one) - left) < Math.abs(x(nearest) - left)) nearest = one;
    }
    moveTo(nearest);
  });
  host.addEventListener("pointerleave", () => {
    place = -1;
    tell();
  });
  host.addEventListener("click", (event) => {
    const at = charts.findIndex(({ figure }) => event.target instanceof Node && figure.contains(event.target));
    if (at < 0) return;
    current = at;
    open();
  });
  host.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !view) return;
    const now = place < 0 ? placesInView(view)[1] : place;
    const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
    if (event.key in steps) moveTo(now + steps[/** @type {keyof typeof steps} */ (event.key)]);
    else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      current = (current + (event.key === "ArrowDown" ? 1 : charts.length - 1)) % charts.length;
      charts[current]?.figure.scrollIntoView({ block: "nearest" });
      tell();
    } else if (event.key === "Enter") open();
    else return;
    event.preventDefault();
  });
  for (const event of ["focus", "blur"]) host.addEventListener(event, tell);
  document.addEventListener("themechange", draw);
  new ResizeObserver(() => {
    if (host.clientWidth !== drawnFor) draw();
  }).observe(host);

  return {
    /** @param {View} next */
    show(next) {
      view = next;
      [place, current] = [-1, 0];
      draw();
    },
  };
}

/** @param {View} part @param {number} width */
function chartOf(part, width) {
  const picture = pictureOf(part, { width, height: HEIGHT_PX, small: true }, COLORS);
  const [line] = part.lines;
  const name = line?.entry.name ?? "";
  const drawing = svgOf(picture, name);
  const { x: left, y: top, width: wide, height } = picture.plot;
  const rule = svg("line", { class: "multiple-rule", y1: top, y2: top + height, visibility: "hidden" });
  drawing.append(rule);
  const said = el("span", { class: "multiple-value" });
  const figure = el("figure", { class: "multiple" }, el("figcaption", {}, el("bdi", {}, name), " ", said), drawing);
  const [from, to] = part.range;
  const x = (/** @type {number} */ place) => left + (((part.xs[place] ?? from) - from) / (to - from || 1)) * wide;
  return { part, figure, said, rule, x };
}

/** @param {View} part @param {ChartLine} line */
function lastPlace(part, line) {
  const [first, end] = placesInView(part);
  for (let place = end - 1; place >= first; place -= 1) if ((line.places[place] ?? -1) >= 0) return place;
  return -1;
}

/** Value, change and night of a point. @param {ChartLine} line @param {number} place */
function wordsOf(line, place) {
  const at = line.places[place] ?? -1;
  const value = line.shard.value[at] ?? null;
  if (value === null) return "no value";
  const moved = line.baseline ? `${change(value / line.baseline)} from baseline` : "";
  const parts = [line.mean ? "" : quantity(value, line.shard.unit), moved, moment(line.shard.stamp[at] ?? "")];
  return parts.filter(Boolean).join(", ");
}
