// @ts-check
/** What a search finds, best first. Nothing here touches the page. */

/** @typedef {import("../data.js").Catalogue} Catalogue */
/** @typedef {{kind: string, words: string, more: string, url: string}} Found `url` from the site's root */

const MOST = 30;
const PAGES = [
  ["Tonight", "index.html"],
  ["Explore", "explore.html"],
  ["Compare", "compare.html"],
  ["Engines", "engines.html"],
  ["Scores", "scores.html"],
  ["Alerts", "alerts.html"],
  ["Machines", "machines.html"],
  ["Nights", "nights/index.html"],
];

/**
 * Everything that can be found.
 *
 * @param {Catalogue} catalogue
 * @returns {Found[]}
 */
export function findable(catalogue) {
  return [
    ...catalogue.experiments.map((one) => ({
      kind: "experiment",
      words: one.title,
      more: one.name === one.title ? "" : one.name,
      url: one.page,
    })),
    ...catalogue.incidents.map((one) => ({
      kind: "incident",
      words: one.headline,
      more: `${one.id} ${one.begin.slice(0, 4)}-${one.begin.slice(4, 6)}-${one.begin.slice(6, 8)} ${one.versions.join(" ")}`,
      url: `incidents/${one.id}.html`,
    })),
    ...catalogue.series.map((one) => ({
      kind: "series",
      words: one.name,
      more: `${one.metric} ${one.id}`,
      url: `explore.html#series=${encodeURIComponent(one.id)}`,
    })),
    ...[...catalogue.stamps].reverse().map((stamp) => ({
      kind: "night",
      words: `${stamp.slice(0, 4)}-${stamp.slice(4, 6)}-${stamp.slice(6, 8)}`,
      more: `${stamp} ${(catalogue.nights[stamp]?.tvm ?? []).join(" ")}`,
      url: `nights/${stamp}.html`,
    })),
    ...[...catalogue.years].reverse().map((year) => ({
      kind: "nights",
      words: `Nights of ${year}`,
      more: "",
      url: `nights/${year}.html`,
    })),
    ...PAGES.map(([words, url]) => ({ kind: "page", words: words ?? "", more: "", url: url ?? "" })),
  ];
}

/**
 * The items in which all words of `text` occur: those whose name begins with it first, then by where it stands.
 *
 * @param {readonly Found[]} items
 * @param {string} text
 * @returns {{found: Found[], count: number}}
 */
export function search(items, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length)
    return {
      found: items.filter((item) => item.kind === "page" || item.kind === "experiment").slice(0, MOST),
      count: 0,
    };
  /** @type {[number, number, Found][]} */
  const scored = [];
  items.forEach((item, order) => {
    const name = item.words.toLowerCase();
    const all = `${name} ${item.more.toLowerCase()}`;
    if (!words.every((word) => all.includes(word))) return;
    const first = words[0] ?? "";
    const at = name.indexOf(first);
    scored.push([at === 0 ? 0 : at > 0 && /\W/.test(name[at - 1] ?? "") ? 1 : at > 0 ? 2 : 3, order, item]);
  });
  scored.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  return { found: scored.slice(0, MOST).map(([, , item]) => item), count: scored.length };
}
