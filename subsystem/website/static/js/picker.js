// @ts-check
/**
 * Which series a query means. A query is words and key=value parts: `engine=tvm workload=res* "two words"`.
 * Words must all occur somewhere in the name; of one key any value will do; different keys must all fit.
 */

/** @typedef {{words: string[], keys: Map<string, string[]>}} Query */
/** @typedef {{text: string, labels: Record<string, string>}} Pickable what is searched: its text and its facts */

const PART = /(?:[^\s"=]+=)?"[^"]*"?|\S+/g;

/**
 * @param {string} text
 * @returns {Query}
 */
export function parseQuery(text) {
  /** @type {Query} */
  const query = { words: [], keys: new Map() };
  for (const part of text.match(PART) ?? []) {
    const at = part.startsWith('"') ? -1 : part.indexOf("=");
    if (at > 0) {
      const key = part.slice(0, at).toLowerCase();
      query.keys.set(key, [...(query.keys.get(key) ?? []), unquoted(part.slice(at + 1))]);
    } else if (unquoted(part)) query.words.push(unquoted(part).toLowerCase());
  }
  return query;
}

/** @param {string} text */
function unquoted(text) {
  return text.startsWith('"') ? text.slice(1).replace(/"$/, "") : text;
}

/**
 * One part of a query as it is written; quotes where blanks or quotes need them.
 *
 * @param {string} key
 * @param {string} value
 */
export function writePart(key, value) {
  const plain = value.replace(/"/g, "*");
  return /\s/.test(plain) || plain === "" ? `${key}="${plain}"` : `${key}=${plain}`;
}

/**
 * Whether `value` is what `wanted` says: equal but for case, where * stands for any text.
 *
 * @param {string} value
 * @param {string} wanted
 */
export function fits(value, wanted) {
  const [have, want] = [value.toLowerCase(), wanted.toLowerCase()];
  if (!want.includes("*")) return have === want;
  const pieces = want.split("*");
  const [first = "", last = ""] = [pieces[0], pieces[pieces.length - 1]];
  if (!have.startsWith(first) || have.length < first.length + last.length || !have.endsWith(last)) return false;
  let at = first.length;
  for (const piece of pieces.slice(1, -1)) {
    const found = have.indexOf(piece, at);
    if (found < 0 || found + piece.length > have.length - last.length) return false;
    at = found + piece.length;
  }
  return true;
}

/**
 * @param {Pickable} item
 * @param {Query} query
 * @param {string} [but] a key that is not asked for
 */
export function matches(item, query, but) {
  const text = item.text.toLowerCase();
  if (!query.words.every((word) => text.includes(word))) return false;
  for (const [key, wanted] of query.keys) {
    if (key === but) continue;
    const value = item.labels[key];
    if (value === undefined || !wanted.some((one) => fits(value, one))) return false;
  }
  return true;
}

/**
 * For each key its values with how many items would match if that value were taken, the other keys as they are; values
 * by count, then by name. Keys with one value over all items are left out, for they tell nothing apart.
 *
 * @param {readonly Pickable[]} items
 * @param {Query} query
 * @returns {Map<string, [string, number][]>}
 */
export function facets(items, query) {
  /** @type {Map<string, Map<string, number>>} */
  const counts = new Map();
  /** @type {Map<Pickable, boolean>} */
  const fitting = new Map(items.map((item) => [item, matches(item, query)]));
  for (const item of items) {
    for (const [key, value] of Object.entries(item.labels)) {
      const values = counts.get(key) ?? counts.set(key, new Map()).get(key);
      const fit = query.keys.has(key) ? matches(item, query, key) : fitting.get(item);
      values?.set(value, (values.get(value) ?? 0) + (fit ? 1 : 0));
    }
  }
  /** @type {Map<string, [string, number][]>} */
  const found = new Map();
  for (const [key, values] of counts) {
    if (values.size < 2) continue;
    found.set(
      key,
      [...values].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)),
    );
  }
  return found;
}

/**
 * Whether the query asks for exactly this value of this key.
 *
 * @param {Query} query
 * @param {string} key
 * @param {string} value
 */
export function asksFor(query, key, value) {
  return (query.keys.get(key) ?? []).some((one) => fits(value, one));
}

/**
 * The query `text` with this value of this key added, or taken out where it is in it.
 *
 * @param {string} text
 * @param {string} key
 * @param {string} value
 */
export function toggled(text, key, value) {
  const all = text.match(PART) ?? [];
  const rest = all.filter((part) => {
    const keys = parseQuery(part).keys;
    return !(keys.get(key) ?? []).some((one) => fits(value, one));
  });
  return (rest.length < all.length ? rest : [...all, writePart(key, value)]).join(" ");
}
