// @ts-check
/** Numbers, moments and changes in words, and the marks of axes; nothing here touches the page. */

/** @type {Record<string, [string, number]>} what a number below LEAST is told in */
const SMALLER = { s: ["ms", 1e3], ms: ["µs", 1e3], µs: ["ns", 1e3], us: ["ns", 1e3] };
/** @type {Record<string, [string, number]>} what a number from 1000 on is told in */
const LARGER = { ns: ["µs", 1e-3], µs: ["ms", 1e-3], us: ["ms", 1e-3], ms: ["s", 1e-3] };
/** As in tvmdash.words, so that every page writes a time in the same unit. */
const LEAST = 0.01;
const BYTES = ["bytes", "kB", "MB", "GB", "TB"]; // powers of 1000, as everywhere in what this dashboard says
const PLURALS = new Set(["bytes", "instructions", "kernels", "registers"]);

/**
 * The unit in which a number of about `value` is best read, and by what to multiply.
 *
 * @param {number} value
 * @param {string} unit
 * @returns {{unit: string, factor: number}}
 */
export function bestUnit(value, unit) {
  let size = Math.abs(value);
  let factor = 1;
  if (unit === "bytes") {
    let step = 0;
    for (; size >= 1000 && step < BYTES.length - 1; step += 1) {
      size /= 1000;
      factor /= 1000;
    }
    return { unit: BYTES[step] ?? unit, factor };
  }
  while (size > 0 && size < LEAST && SMALLER[unit]) {
    const [next, by] = SMALLER[unit] ?? [unit, 1];
    [unit, factor, size] = [next, factor * by, size * by];
  }
  while (size >= 1000 && LARGER[unit]) {
    const [next, by] = LARGER[unit] ?? [unit, 1];
    [unit, factor, size] = [next, factor * by, size * by];
  }
  return { unit, factor };
}

/**
 * `value` with `digits` significant digits and no exponent from 0.00001 to ten million.
 *
 * @param {number} value
 * @param {number} [digits]
 */
export function number(value, digits = 4) {
  if (value === 0 || !Number.isFinite(value)) return value === 0 ? "0" : "not a number";
  const rounded = Number(value.toPrecision(digits));
  const magnitude = Math.floor(Math.log10(Math.abs(rounded)));
  if (magnitude < -5 || magnitude >= 7) return value.toPrecision(digits);
  const decimals = Math.max(0, digits - 1 - magnitude);
  return decimals === 0 && Number.isInteger(value) ? String(value) : rounded.toFixed(decimals);
}

/**
 * A value with its unit: "1.234 ms", "12.50 kB". Null is a dash.
 *
 * @param {number | null | undefined} value
 * @param {string} unit
 */
export function quantity(value, unit) {
  if (value === null || value === undefined) return "\u2013";
  const best = bestUnit(value, unit);
  const shown = value * best.factor;
  const isCount = Number.isInteger(shown) && !(best.unit in LARGER) && !(best.unit in SMALLER);
  const name = isCount && Math.abs(shown) === 1 && PLURALS.has(best.unit) ? best.unit.slice(0, -1) : best.unit;
  return `${isCount ? shown : number(shown)} ${name}`.trimEnd();
}

/**
 * An interval in one unit: "1.20 to 1.31 ms"; "at most 1.31 ms" where it reaches 0, which no time and no size does;
 * empty where an end is unknown.
 *
 * @param {number | null | undefined} low
 * @param {number | null | undefined} high
 * @param {string} unit
 */
export function interval(low, high, unit) {
  if (low === null || low === undefined || high === null || high === undefined) return "";
  const best = bestUnit(high, unit);
  if (low <= 0 && high > 0 && (unit === "bytes" || unit in LARGER || unit in SMALLER))
    return `at most ${number(high * best.factor)} ${best.unit}`.trimEnd();
  return `${number(low * best.factor)} to ${number(high * best.factor)} ${best.unit}`.trimEnd();
}

/**
 * A ratio as a change: 1.021 is "+2.1 %", 0.9996 "\u22120.04 %", 3.2 "+220 %". As tvmdash.text.format_percent.
 *
 * @param {number | null | undefined} ratio
 */
export function change(ratio) {
  if (ratio === null || ratio === undefined || !Number.isFinite(ratio) || ratio <= 0) return "\u2013";
  const percent = Math.max((ratio - 1) * 100, -99.9);
  const size = Math.abs(percent);
  const text = size.toFixed(percent >= 99.5 ? 0 : size >= 0.995 ? 1 : 2);
  if (Number(text) === 0) return "0 %";
  return `${percent < 0 ? "\u2212" : "+"}${text} %`;
}

/**
 * Seconds since 1970 of a stamp, YYYYMMDDTHHMMSSZ, or of a day, YYYY-MM-DD; NaN for anything else.
 *
 * @param {string} stamp
 */
export function seconds(stamp) {
  const found = /^(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d)(\d\d)(\d\d)Z)?$/.exec(stamp);
  if (!found) return NaN;
  const [year, month, day, hour = 0, minute = 0, second = 0] = found.slice(1).map((part) => Number(part ?? 0));
  return Date.UTC(year ?? 0, (month ?? 1) - 1, day, hour, minute, second) / 1e3;
}

/**
 * The stamp of that moment.
 *
 * @param {number} time seconds since 1970
 */
export function stampOf(time) {
  return new Date(Math.round(time) * 1e3).toISOString().replace(/[-:]|\.\d+/g, "");
}

/**
 * As in 2026-11-21.
 *
 * @param {string} stamp
 */
export function day(stamp) {
  const date = new Date(seconds(stamp) * 1e3);
  if (Number.isNaN(date.getTime())) return stamp;
  return date.toISOString().slice(0, 10);
}

/**
 * As in "2026-11-21 03:15 UTC".
 *
 * @param {string} stamp
 */
export function moment(stamp) {
  const time = /T(\d\d)(\d\d)/.exec(stamp);
  return time ? `${day(stamp)} ${time[1]}:${time[2]} UTC` : day(stamp);
}

/**
 * "1 series", "2 nights"; `many` where adding an s is not enough.
 *
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
export function counted(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}

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
    const [now = "", month = "", date = ""] = day(stampOf(time)).split("-");
    const changed = now !== year;
    year = now;
    if (step > 300 * 86400) return now;
    const hour = new Date(time * 1e3).toISOString().slice(11, 16);
    if (step > 27 * 86400) return `${now}-${month}`;
    const words = step < 86400 ? `${month}-${date} ${hour}` : `${month}-${date}`;
    return changed ? `${words}\n${now}` : words;
  });
}
