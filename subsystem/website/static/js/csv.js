// @ts-check
/** CSV as every spreadsheet reads it: lines end with LF. Touches no page. */

/**
 * @param {readonly string[]} heads
 * @param {readonly (readonly (string | number | null | undefined)[])[]} rows
 */
export function formatCsv(heads, rows) {
  return [heads, ...rows].map((row) => `${row.map((value) => csvCell(String(value ?? ""))).join(",")}\n`).join("");
}

/** Quoted where it must be, and never a formula of a spreadsheet. @param {string} text */
function csvCell(text) {
  const safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}

const SERIES_HEADS = "stamp,value,low,high,std,samples,tvm,machine,code".split(",");

/** All points of a series, oldest first. @param {import("./data.js").Shard} shard */
export function csvOfSeries(shard) {
  return formatCsv(
    SERIES_HEADS,
    shard.stamp.map((stamp, at) => {
      const names = [shard.tvms[shard.tvm[at] ?? -1], shard.machines[shard.machine[at] ?? -1]];
      return [stamp, shard.value[at], shard.low[at], shard.high[at], shard.std[at], shard.samples[at], ...names, shard.code[at]];
    }),
  );
}
