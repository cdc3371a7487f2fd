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
