// @ts-check
/** The nights of a comparison: each is one file of columns. Of a TVM version or a machine, every night that had it. */

import { readColumns, readJson, SiteError } from "../data.js";
import { isVersion } from "../ratios.js";

/** @typedef {import("../data.js").Catalogue} Catalogue */
/** @typedef {import("../data.js").Entry} Entry */
/** @typedef {import("../ratios.js").Side} Side */
/** @typedef {import("../ratios.js").Point} Point */
/** @typedef {{tvm: string, machine: string, reference: string}} Measured by what an experiment was measured in a night */
/** @typedef {{stamp: string, experiments: Record<string, Measured>, points: Map<string, Point>}} Night */

const MOST = 60;

/**
 * The stamps that a side may have values of, oldest first: at most the newest 60.
 *
 * @param {Side} side
 * @param {Catalogue} catalogue
 * @returns {Promise<string[]>}
 */
export async function stampsOf(side, catalogue) {
  if (side.kind === "night") return [side.value];
  const recent = catalogue.stamps.filter((stamp) => {
    const night = catalogue.nights[stamp];
    return side.kind === "machine" ? night?.machine === side.value : night?.tvm.some((name) => isSame(name, side.value));
  });
  if (recent.length || side.kind === "machine") return recent;
  for (const year of [...catalogue.years].reverse()) {
    const { nights } = await readJson(`nights/${year}.json`);
    const found = Object.keys(nights).filter((stamp) =>
      nights[stamp].versions.some((/** @type {string} */ name) => isSame(name, side.value)),
    );
    if (found.length) return found.sort().slice(-MOST);
  }
  return [];
}

/** @param {string} name as a night's record writes it @param {string} value that, or a commit */
function isSame(name, value) {
  return name === value || isVersion(name, value);
}

/**
 * A night's points by series; null where it left no data.
 *
 * @param {string} stamp
 * @returns {Promise<Night | null>}
 */
export async function readNight(stamp) {
  try {
    return nightOf(await readColumns(stamp));
  } catch (error) {
    if (error instanceof SiteError && error.isMissing) return null;
    throw error;
  }
}

/** @param {any} columns @returns {Night} */
export function nightOf(columns) {
  /** @type {Map<string, Point>} */
  const points = new Map();
  columns.id.forEach((/** @type {string} */ id, /** @type {number} */ at) => {
    const value = columns.value[at];
    if (value === null) return;
    const [low, high] = [columns.low[at] ?? value, columns.high[at] ?? value];
    points.set(id, { stamp: columns.stamp, value, low, high, code: columns.code[at] });
  });
  return { stamp: columns.stamp, experiments: columns.experiments, points };
}

/**
 * The points of a series that belong to the side, and what they were measured beside ("" where that differs).
 *
 * @param {string} id
 * @param {string} experiment
 * @param {Side} side
 * @param {readonly Night[]} nights
 * @returns {{points: Point[], reference: string}}
 */
export function pointsOf(id, experiment, side, nights) {
  /** @type {Point[]} */
  const points = [];
  /** @type {Set<string>} */
  const references = new Set();
  for (const night of nights) {
    const point = night.points.get(id);
    const measured = night.experiments[experiment];
    if (!point || !measured) continue;
    if (side.kind === "tvm" && !isVersion(side.value, measured.tvm)) continue;
    if (side.kind === "machine" && measured.machine !== side.value) continue;
    points.push(point);
    references.add(measured.reference);
  }
  const [reference = ""] = references;
  return { points, reference: references.size === 1 ? reference : "" };
}
