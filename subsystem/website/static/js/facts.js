// @ts-check
/** Nested facts as paths with text. Nothing here touches the page. */

/**
 * Each fact with its path, as in ["artifact.version", "0.27.dev0"]; numbers with the unit that their name says.
 *
 * @param {unknown} value
 * @param {string} [name]
 * @returns {Generator<[string, string]>}
 */
export function* flat(value, name = "") {
  if (value !== null && typeof value === "object") {
    const parts = Object.entries(value);
    if (!parts.length && name) yield [name, "none"];
    const plain = Array.isArray(value) && value.every((one) => one === null || typeof one !== "object");
    if (plain && parts.length) yield [name, value.map(String).join(", ")];
    else for (const [key, item] of parts) yield* flat(item, name ? `${name}.${key}` : key);
  } else if (name) yield [name, value === null || value === "" ? "not known" : `${value}${unitOf(name, value)}`];
}

/**
 * The unit that a number's name says, as in memory_bytes, or that the record format gives it.
 *
 * @param {string} name
 * @param {unknown} value
 */
function unitOf(name, value) {
  if (typeof value !== "number") return "";
  if (/bytes$|^(code_size|device_memory_usage)$/.test(name)) return " bytes";
  return /(^|_)ms(_|$)|^compile_time$/.test(name) ? " ms" : "";
}
