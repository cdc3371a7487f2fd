// @ts-check
/** Numbers, moments and changes in words; nothing here touches the page. */

/** @type {Record<string, [string, number]>} what a number below 1 is told in */
const SMALLER = { s: ["ms", 1e3], ms: ["µs", 1e3], µs: ["ns", 1e3], us: ["ns", 1e3] };
/** @type {Record<string, [string, number]>} what a number from 1000 on is told in */
const LARGER = { ns: ["µs", 1e-3], µs: ["ms", 1e-3], us: ["ms", 1e-3], ms: ["s", 1e-3] };
const BYTES = ["bytes", "KiB", "MiB", "GiB", "TiB"];
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

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
    for (; size >= 1024 && step < BYTES.length - 1; step += 1) {
      size /= 1024;
      factor /= 1024;
    }
    return { unit: BYTES[step] ?? unit, factor };
  }
  while (size > 0 && size < 1 && SMALLER[unit]) {
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
 * A value with its unit: "1.234 ms", "12.50 KiB". Null is a dash.
 *
 * @param {number | null | undefined} value
 * @param {string} unit
 */
export function quantity(value, unit) {
  if (value === null || value === undefined) return "\u2013";
  const best = bestUnit(value, unit);
  const shown = value * best.factor;
  return `${(best.unit === "bytes" || best.unit === "") && Number.isInteger(shown) ? shown : number(shown)} ${best.unit}`.trimEnd();
}

/**
 * An interval in one unit: "1.20 to 1.31 ms"; empty where an end is unknown.
 *
 * @param {number | null | undefined} low
 * @param {number | null | undefined} high
 * @param {string} unit
 */
export function interval(low, high, unit) {
  if (low === null || low === undefined || high === null || high === undefined) return "";
  const best = bestUnit(high, unit);
  return `${number(low * best.factor)} to ${number(high * best.factor)} ${best.unit}`.trimEnd();
}

/**
 * A ratio as a change: 1.021 is "+2.1 %", 0.9996 "\u22120.04 %", 3.2 "3.2 times". Digits as the size deserves.
 *
 * @param {number | null | undefined} ratio
 */
export function change(ratio) {
  if (ratio === null || ratio === undefined || !Number.isFinite(ratio) || ratio <= 0) return "\u2013";
  if (ratio >= 3 || ratio <= 1 / 3) return `${number(ratio, 3)} times`;
  const percent = (ratio - 1) * 100;
  const size = Math.abs(percent);
  if (size < 0.005) return "0.0 %";
  return `${percent < 0 ? "\u2212" : "+"}${size.toFixed(size < 0.1 ? 2 : size < 10 ? 1 : 0)} %`;
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
 * As in "21 Nov 2026".
 *
 * @param {string} stamp
 */
export function day(stamp) {
  const date = new Date(seconds(stamp) * 1e3);
  if (Number.isNaN(date.getTime())) return stamp;
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
}

/**
 * As in "21 Nov 2026, 03:15 UTC".
 *
 * @param {string} stamp
 */
export function moment(stamp) {
  const time = /T(\d\d)(\d\d)/.exec(stamp);
  return time ? `${day(stamp)}, ${time[1]}:${time[2]} UTC` : day(stamp);
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
