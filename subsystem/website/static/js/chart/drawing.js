// @ts-check
/** Pictures as SVG, or on a canvas. */

import { FONT_PX } from "./picture.js";
import { clean, svg } from "../dom.js";
import { color, seriesColor, seriesDash } from "../plot.js";

/** @typedef {import("./picture.js").Picture} Picture */
/** @typedef {import("./picture.js").Shape} Shape */

/** @type {import("./picture.js").Colors} those of the page, as they are now */
export const COLORS = { series: seriesColor, dash: seriesDash, named: color };
const FAMILY = "system-ui, sans-serif";

let count = 0;

/**
 * The picture as an element that needs no style sheet.
 *
 * @param {Picture} picture
 * @param {string} name for those who do not see it
 */
export function svgOf(picture, name) {
  const { width, height } = picture;
  return svg(
    "svg",
    {
      xmlns: "http://www.w3.org/2000/svg",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "img",
      "aria-label": name,
      "font-family": FAMILY,
      "font-size": FONT_PX,
    },
    svg("title", {}, name),
    svg("rect", { width, height, fill: color("--card") }),
    groupOf(picture),
  );
}

/** @param {Picture} picture @returns {SVGGElement} */
function groupOf({ plot, shapes, clipped, inside = [] }) {
  const id = `plot-${(count += 1)}`;
  return svg(
    "g",
    {},
    svg("clipPath", { id }, svg("rect", { ...plot })),
    svg("g", {}, ...shapes.map(elementOf)),
    svg("g", { "clip-path": `url(#${id})` }, ...clipped.map(elementOf)),
    ...inside.map(({ x, y, picture }) => svg("g", { transform: `translate(${x} ${y})` }, groupOf(picture))),
  );
}

/** @param {Shape} shape */
function elementOf(shape) {
  if (shape.kind === "text") {
    const { x, y, text, anchor, bold, turned } = shape;
    const transform = turned ? `rotate(90 ${rounded(x)} ${rounded(y)})` : null;
    const place = { x: rounded(x), y: rounded(y), fill: shape.color, "text-anchor": anchor, transform };
    return svg("text", { ...place, "font-weight": bold ? 600 : null }, text);
  }
  const points = shape.points.map((point) => point.map(rounded).join(",")).join(" ");
  if (shape.kind === "area") return svg("polygon", { points, fill: shape.color, "fill-opacity": shape.alpha });
  const { color: stroke, width, dash, alpha } = shape;
  const extra = { "stroke-dasharray": dash?.length ? dash.join(" ") : null, "stroke-opacity": alpha ?? 1 };
  return svg("polyline", { points, fill: "none", stroke, "stroke-width": width, "stroke-linejoin": "round", ...extra });
}

/** @param {number} value */
function rounded(value) {
  return Math.round(value * 10) / 10;
}

/**
 * The picture on a canvas, so many times as large.
 *
 * @param {Picture} picture
 * @param {number} scale
 */
export function canvasOf(picture, scale) {
  const { width, height } = picture;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width * scale, height * scale];
  const ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  ctx.scale(scale, scale);
  ctx.fillStyle = color("--card");
  ctx.fillRect(0, 0, width, height);
  paintAll(ctx, picture);
  return canvas;
}

/** @param {CanvasRenderingContext2D} ctx @param {Picture} picture */
function paintAll(ctx, { plot, shapes, clipped, inside = [] }) {
  shapes.forEach((shape) => paint(ctx, shape));
  for (const { x, y, picture } of inside) {
    ctx.save();
    ctx.translate(x, y);
    paintAll(ctx, picture);
    ctx.restore();
  }
  ctx.save();
  ctx.beginPath();
  ctx.rect(plot.x, plot.y, plot.width, plot.height);
  ctx.clip();
  clipped.forEach((shape) => paint(ctx, shape));
  ctx.restore();
}

/** @param {CanvasRenderingContext2D} ctx @param {Shape} shape */
function paint(ctx, shape) {
  ctx.save();
  if (shape.kind === "text") {
    ctx.font = `${shape.bold ? "600 " : ""}${FONT_PX}px ${FAMILY}`;
    ctx.textAlign = shape.anchor === "middle" ? "center" : shape.anchor;
    ctx.fillStyle = shape.color;
    ctx.translate(shape.x, shape.y);
    if (shape.turned) ctx.rotate(Math.PI / 2);
    ctx.fillText(clean(shape.text), 0, 0);
  } else {
    ctx.beginPath();
    shape.points.forEach(([x, y]) => ctx.lineTo(x, y));
    ctx.globalAlpha = shape.alpha ?? 1;
    if (shape.kind === "area") {
      ctx.fillStyle = shape.color;
      ctx.fill();
    } else {
      ctx.strokeStyle = shape.color;
      ctx.lineWidth = shape.width;
      ctx.lineJoin = "round";
      ctx.setLineDash(shape.dash ?? []);
      ctx.stroke();
    }
  }
  ctx.restore();
}
