// @ts-check
/** By what series can be grouped. Touches no page. */

/** @typedef {import("../data.js").Entry} Entry */

export const ALL = "all";

/**
 * What can be grouped by: what differs among these series.
 *
 * @param {readonly Entry[]} entries
 */
export function keysOf(entries) {
  const keys = new Set(entries.flatMap((entry) => Object.keys(entry.labels)).concat("unit"));
  return [...keys].filter((key) => new Set(entries.map((entry) => valueOf(entry, key))).size > 1);
}

/** @param {Entry} entry @param {string} key */
export function valueOf(entry, key) {
  return key === "unit" ? entry.unit || "no unit" : (entry.labels[key] ?? "not told");
}
