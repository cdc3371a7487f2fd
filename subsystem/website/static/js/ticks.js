// @ts-check
/** Where the marks of an axis stand and what is written there. Nothing here touches the page. */

import { bestUnit, day, number, stampOf } from "./format.js";

/**
 * Round values from `min` to `max` for a logarithmic axis: 1, 2, 5 of each decade, or even steps where that gives few.
 *
 * @param {number} min above 0
 * @param {number} max
 * @returns {number[]}
 */
export function logSplits(min, max) {
  /** @type {number[]} */
  const found = [];
  for (let power = Math.floor(Math.log10(min)); power <= Math.ceil(Math.log10(max)); power += 1) {
    for (const digit of [1, 2, 5]) {
      const value = Number(`${digit}e${power}`);
      if (value >= min && value <= max) found.push(value);
    }
  }
  if (found.length >= 4) return found.length > 12 ? found.filter((value) => isDecade(value)) : found;
  return evenSplits(min, max, 5);
}

/** @param {number} value */
function isDecade(value) {
  const log = Math.log10(value);
  return Math.abs(log - Math.round(log)) < 1e-9;
}

/**
 * About `count` round values at even steps from `min` to `max`.
 *
 * @param {number} min
 * @param {number} max
 * @param {number} count
 */
export function evenSplits(min, max, count) {
  const rough = (max - min) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((digit) => digit * power >= rough) ?? 10) * power;
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  /** @type {number[]} */
  const found = [];
  for (let value = Math.ceil(min / step) * step; value <= max + step * 1e-9; value += step) {
    found.push(Number(value.toFixed(decimals)));
  }
  return found;
}

/**
 * What stands at the marks: one unit and as many decimals as tell neighbours apart.
 *
 * @param {readonly number[]} splits
 * @param {string} unit
 * @returns {{labels: string[], unit: string}}
 */
export function tickLabels(splits, unit) {
  const best = bestUnit(Math.max(...splits.map(Math.abs), 0), unit);
  const shown = splits.map((value) => value * best.factor);
  const gaps = shown
    .slice(1)
    .map((value, index) => Math.abs(value - (shown[index] ?? 0)))
    .filter((gap) => gap > 0);
  const decimals = gaps.length ? Math.min(12, Math.max(0, -Math.floor(Math.log10(Math.min(...gaps)) + 1e-9))) : 2;
  const even = gaps.length > 0 && Math.max(...gaps) < 1.5 * Math.min(...gaps);
  return { labels: shown.map((value) => (even ? value.toFixed(decimals) : number(value, 3))), unit: best.unit };
}

/**
 * Ratios as changes in percent: 1.1 is "+10 %".
 *
 * @param {readonly number[]} splits
 */
export function percentLabels(splits) {
  const percents = splits.map((value) => (value - 1) * 100);
  const { labels } = tickLabels(percents, "");
  return labels.map((label, index) => {
    const percent = percents[index] ?? 0;
    if (Math.abs(percent) < 1e-9) return "0 %";
    return `${percent > 0 ? "+" : "\u2212"}${label.replace("-", "")} %`;
  });
}

/**
 * Days, months or years in UTC, as near as the marks stand; the year where it changes.
 *
 * @param {unknown} _plot
 * @param {readonly number[]} splits seconds since 1970
 * @returns {string[]}
 */
export function timeLabels(_plot, splits) {
  const step = (splits[1] ?? Infinity) - (splits[0] ?? 0);
  let year = "";
  return splits.map((time) => {
    const [date = "", month = "", now = ""] = day(stampOf(time)).split(" ");
    const changed = now !== year;
    year = now;
    if (step > 300 * 86400) return now;
    const hour = new Date(time * 1e3).toISOString().slice(11, 16);
    const words = step < 86400 ? `${date} ${month} ${hour}` : step > 27 * 86400 ? month : `${date} ${month}`;
    return changed ? `${words}\n${now}` : words;
  });
}
