// @ts-check
/** Values as CSV, a point a line. Touches no page. */

import { placesInView } from "../chart/axis.js";
import { formatCsv } from "../csv.js";

/** @typedef {{night: string, commit: string, experiment: string, series: string, unit: string, value: number,
 *   low: number | null, high: number | null, ratio: number | null}} Row */

const HEADS = "night,commit,experiment,series,unit,value,low,high,ratio_to_baseline".split(",");

/**
 * The points in view, series by series, oldest first.
 *
 * @param {import("../chart/chart.js").View} view
 * @returns {Row[]}
 */
export function rowsOf(view) {
  return view.lines.flatMap(({ entry, shard, places, baseline }) => {
    const known = places.slice(...placesInView(view)).filter((at) => at >= 0);
    return known
      .sort((a, b) => a - b)
      .flatMap((at) => {
        const value = shard.value[at];
        if (value === null || value === undefined) return [];
        const [low, high] = [shard.low[at] ?? null, shard.high[at] ?? null];
        const of = { night: shard.stamp[at] ?? "", commit: shard.tvms[shard.tvm[at] ?? -1] ?? "" };
        const what = { experiment: entry.experiment, series: entry.name, unit: shard.unit };
        return [{ ...of, ...what, value, low, high, ratio: baseline ? value / baseline : null }];
      });
  });
}

/** @param {readonly Row[]} rows */
export function csvOf(rows) {
  return formatCsv(
    HEADS,
    rows.map(({ night, commit, experiment, series, unit, value, low, high, ratio }) => {
      const at = night.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z");
      const change = ratio === null ? null : Number(ratio.toPrecision(7));
      return [at, commit, experiment, series, unit, value, low, high, change];
    }),
  );
}
