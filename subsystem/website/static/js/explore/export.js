// @ts-check
/** The view as files: a picture as SVG or PNG, the values as CSV. */

import { canvasOf, COLORS, svgOf } from "../chart/drawing.js";
import { label, pictureOf } from "../chart/picture.js";
import { readNight } from "../compare/nights.js";
import { csvOf, rowsOf } from "./csv.js";
import { eachOf, readJson } from "../data.js";
import { saveFile } from "../dom.js";
import { change, day, quantity, seconds, stampOf } from "../format.js";
import { lastIn, ruleOf } from "./legend.js";
import { partsOf } from "./multiples.js";

/** @typedef {import("../chart/chart.js").View} View */
/** @typedef {import("../data.js").Entry} Entry */
/** @typedef {import("../chart/picture.js").Picture} Picture */

const [WIDTH, HEIGHT, ROW_PX, MARGIN] = [1200, 520, 17, 12];
const [COLUMNS, SMALL_HEIGHT, TITLE_PX] = [3, 210, 14];
const MOST_LETTERS = 190;
const PNG_SCALE = 2;
const AT_ONCE = 8;

/** @param {View} view */
function titleOf(view) {
  return `TVM nightly benchmarks, ${spanOf(view).map(day).join(" to ")}`;
}

/** The first and the last night in view. @param {View} view */
function spanOf({ period, axis }) {
  return [Math.max(period[0], axis.ends[0]), Math.min(period[1], axis.ends[1])].map(stampOf);
}

/** @param {View} view @param {string} ending */
function nameOf(view, ending) {
  const days = spanOf(view).map((stamp) => stamp.slice(0, 8).replace(/(\d{4})(\d\d)/, "$1-$2-"));
  return `tvm-${days.join("-to-")}.${ending}`;
}

/**
 * The chart, or the small ones, with a title above and the legend below.
 *
 * @param {View} view
 * @returns {Picture}
 */
function wholePicture(view) {
  const lines = view.lines.filter((line) => !view.group || line.mean);
  const chart = view.multiples ? smallPictures(view) : pictureOf(view, { width: WIDTH, height: HEIGHT }, COLORS);
  const [ink, quiet] = [COLORS.named("--fg"), COLORS.named("--muted")];
  const title = { ...label(MARGIN, 14, titleOf(view), ink, "start"), bold: true };
  const rows = lines.flatMap((line, at) => {
    const y = chart.height + MARGIN + at * ROW_PX;
    const last = lastIn(line, view);
    const value = last === null ? null : (line.shard.value[last] ?? null);
    const moved = value !== null && line.baseline ? `${change(value / line.baseline)} from baseline` : "";
    const words = [line.mean ? "" : quantity(value, line.shard.unit), moved].filter(Boolean).join(", ");
    /** @type {[number, number][]} */
    const swatch = [[MARGIN, y - 5], [MARGIN + 22, y - 5]];
    return [
      { kind: /** @type {const} */ ("line"), points: swatch, color: COLORS.series(line.color), width: 3, dash: COLORS.dash(line.color) },
      label(MARGIN + 30, y, line.entry.name, ink, "start"),
      label(WIDTH - MARGIN, y, words, quiet, "end"),
    ];
  });
  const below = chart.height + MARGIN + lines.length * ROW_PX + 6;
  const notes = wrapped(ruleOf(view)).map((text, at) => label(MARGIN, below + at * ROW_PX, text, quiet, "start"));
  return { ...chart, height: below + notes.length * ROW_PX, shapes: [...chart.shapes, title, ...rows, ...notes] };
}

/** @param {View} view @returns {Picture} */
function smallPictures(view) {
  const [width, height] = [WIDTH / COLUMNS, SMALL_HEIGHT];
  const inside = partsOf(view).map((part, at) => {
    const drawn = pictureOf(part, { width, height: height - TITLE_PX, small: true }, COLORS);
    const name = label(MARGIN, 0, part.lines[0]?.entry.name ?? "", COLORS.named("--fg"), "start");
    const picture = { ...drawn, shapes: [...drawn.shapes, { ...name, y: 10 }] };
    return { x: (at % COLUMNS) * width, y: 2 * TITLE_PX + Math.floor(at / COLUMNS) * height, picture };
  });
  const plot = { x: 0, y: 0, width: 0, height: 0 };
  const rows = Math.ceil(inside.length / COLUMNS);
  return { width: WIDTH, height: 2 * TITLE_PX + rows * height, plot, shapes: [], clipped: [], inside };
}

/** @param {string} text */
function wrapped(text) {
  return text.match(new RegExp(`.{1,${MOST_LETTERS}}(?:\\s|$)`, "g"))?.map((part) => part.trim()) ?? [];
}

/** @param {View} view */
export function saveSvg(view) {
  const text = new XMLSerializer().serializeToString(svgOf(wholePicture(view), titleOf(view)));
  saveFile(nameOf(view, "svg"), new Blob([text], { type: "image/svg+xml" }));
}

/** @param {View} view */
export function savePng(view) {
  canvasOf(wholePicture(view), PNG_SCALE).toBlob((made) => {
    if (made) saveFile(nameOf(view, "png"), made);
  });
}

/** @param {View} view */
export function saveCsv(view) {
  saveFile(nameOf(view, "csv"), new Blob([csvOf(rowsOf(view))], { type: "text/csv" }));
}

/**
 * Every value of these series on the nights in view, however many they are: a file a night is read.
 *
 * @param {import("../data.js").Catalogue} catalogue
 * @param {readonly Entry[]} entries
 * @param {View} view
 */
export async function saveCsvOf(catalogue, entries, view) {
  const stamps = await stampsIn(catalogue, view);
  /** @type {Map<string, import("../compare/nights.js").Night>} */
  const nights = new Map();
  await eachOf(stamps, AT_ONCE, async (stamp) => {
    const night = await readNight(stamp);
    if (night) nights.set(stamp, night);
  });
  const rows = entries.flatMap(({ id, experiment, name, unit }) =>
    stamps.flatMap((stamp) => {
      const [night, point] = [nights.get(stamp), nights.get(stamp)?.points.get(id)];
      if (!night || !point) return [];
      const commit = night.experiments[experiment]?.tvm ?? "";
      const { value } = point;
      const [low, high] = point.low < point.high ? [point.low, point.high] : [null, null];
      return [{ night: stamp, commit, experiment, series: name, unit, value, low, high, ratio: null }];
    }),
  );
  saveFile(nameOf(view, "csv"), new Blob([csvOf(rows)], { type: "text/csv" }));
}

/**
 * The nights in view, oldest first, also those that the catalogue does not name.
 *
 * @param {import("../data.js").Catalogue} catalogue
 * @param {View} view
 */
async function stampsIn(catalogue, { period: [from, to] }) {
  const found = new Set(catalogue.stamps);
  const [first = ""] = catalogue.stamps;
  for (const year of catalogue.years) {
    if (seconds(first) <= from || seconds(`${year}-12-31`) + 86400 < from || seconds(`${year}-01-01`) > to) continue;
    for (const stamp of Object.keys((await readJson(`nights/${year}.json`)).nights)) found.add(stamp);
  }
  return [...found].filter((stamp) => seconds(stamp) >= from && seconds(stamp) <= to).sort();
}
