// @ts-check
/**
 * The site's data: index.json once, shards of series and receipts when they are asked for. docs/reference/website-data.md says
 * what is in them. Whatever is wrong comes as a SiteError whose message is a sentence for the reader.
 */

/**
 * @typedef {{
 *   id: string, experiment: string, title: string, page: string, name: string, metric: string, unit: string,
 *   direction: "lower" | "higher" | "none", labels: Record<string, string>, text: string,
 *   last: number | null, low: number | null, high: number | null, lastStamp: string, change: number | null,
 *   verdict: string, grade: string, visible: number | null, noise: number | null, ratioNoise: number | null,
 *   points: number, past: boolean, incident: string | null, pack: string,
 * }} Entry one series of the catalogue; `text` is what words are searched in, `page` that of its experiment
 * @typedef {{name: string, title: string, page: string, active: boolean}} Experiment
 * @typedef {{state: string, tvm: string[], machine: string}} NightFacts
 * @typedef {{
 *   night: string, title: string, stamps: string[], nights: Record<string, NightFacts>, years: number[],
 *   incidents: {id: string, headline: string, begin: string, versions: string[]}[],
 *   experiments: Experiment[], series: Entry[], byId: Map<string, Entry>,
 * }} Catalogue
 * @typedef {{stamp: string, size: number | null, kind: string}} Step
 * @typedef {{stamp: string, kind: string, words: string, break?: boolean}} Annotation
 * @typedef {{id: string, state: string, begin: string, end: string | null, percent: number | null, headline: string,
 *   way?: "worse" | "better" | "changed"}}
 *   Incident
 * @typedef {{
 *   id: string, name: string, experiment: string, metric: string, unit: string, direction: "lower" | "higher" | "none",
 *   labels: Record<string, string>, stamp: string[], value: (number | null)[], low: (number | null)[],
 *   high: (number | null)[], std: (number | null)[], samples: (number | null)[], tvm: (number | null)[],
 *   tvms: string[], machine: (number | null)[], machines: string[], code: (number | null)[], noise: number | null,
 *   steps: Step[], annotations: Annotation[], incidents: Incident[],
 * }} Shard values of one series over nights, by column
 */

/** What the reader is told; its message is shown. */
export class SiteError extends Error {
  /** Whether the site has no such file. */
  isMissing = false;
}

const VERSION = 1;
/** @type {Record<string, number>} of files in these folders */
const VERSIONS = { nights: 3, series: 2, columns: 2 };
const SCRIPTS_ALONE = /^(series|columns)\//;
const FINE = 100000;
const PLAIN_PATH = /^([\w~-]+\/)*[\w~-]+\.json$/;
const AGAIN = "Reload the page; if that does not help, publish the site again.";

/** @type {Map<string, Promise<any>>} */
const read = new Map();

/** @type {Map<string, Promise<Response>>} what start.js asked for already */
const answers = /** @type {any} */ (globalThis).tvmdashAnswers ?? new Map();

/** The way from this page to the site's root: "" or "../". */
export function root() {
  return document.body.dataset.root ?? "";
}

/**
 * A JSON file of the site, read once.
 *
 * @param {string} path from the site's root
 * @returns {Promise<any>}
 */
export function readJson(path) {
  const known = read.get(path);
  if (known) return known;
  const reading = fetchJson(path);
  read.set(path, reading);
  reading.catch(() => read.delete(path));
  return reading;
}

/** @param {string} path */
async function fetchJson(path) {
  if (location.protocol === "file:") return checkVersion(await runFromDisk(path), path);
  let answer;
  try {
    answer = await (answers.get(path) ?? fetch(root() + (SCRIPTS_ALONE.test(path) ? path.replace(/json$/, "js") : path)));
  } catch {
    throw new SiteError(`${path} could not be loaded. Is the server still running?`);
  } finally {
    answers.delete(path);
  }
  if (answer.status === 404) throw Object.assign(new SiteError(`This site has no ${path}.`), { isMissing: true });
  if (!answer.ok) throw new SiteError(`${path} could not be read: the server returned status ${answer.status}. ${AGAIN}`);
  let value;
  try {
    value = SCRIPTS_ALONE.test(path) ? JSON.parse((await answer.text()).split("\n")[1] ?? "") : await answer.json();
  } catch {
    throw new SiteError(`${path} is no JSON. ${AGAIN}`);
  }
  return checkVersion(value, path);
}

/**
 * What stands in a JSON file, of the script beside it: from disk no page may read the file itself.
 *
 * @param {string} path
 * @returns {Promise<any>}
 */
function runFromDisk(path) {
  return new Promise((resolve, reject) => {
    const refuse = () =>
      reject(Object.assign(new SiteError(`This site has no ${path} for pages opened from disk.`), { isMissing: true }));
    if (!PLAIN_PATH.test(path)) return refuse(); // an address must not choose what is run
    const script = document.createElement("script");
    script.src = root() + path.replace(/json$/, "js");
    script.addEventListener("error", refuse);
    script.addEventListener("load", () => {
      resolve(/** @type {any} */ (globalThis).tvmdashFiles?.[path]);
      script.remove();
    });
    document.head.append(script);
  });
}

/**
 * @param {any} value
 * @param {string} path
 */
export function checkVersion(value, path) {
  const version = value?.schema_version;
  const wanted = VERSIONS[path.split("/")[0] ?? ""] ?? VERSION;
  if (version !== wanted) {
    throw new SiteError(`${path} has version ${version ?? "unknown"}; this page reads ${wanted}. ${AGAIN}`);
  }
  return value;
}

/** @returns {Promise<Catalogue>} */
export async function readCatalogue() {
  return catalogue(await readJson("index.json"));
}

/** @type {WeakMap<object, Catalogue>} */
const catalogues = new WeakMap();

/**
 * The columns of index.json as one object a series.
 *
 * @param {any} index
 * @returns {Catalogue}
 */
export function catalogue(index) {
  const known = catalogues.get(index);
  if (known) return known;
  const columns = index.series;
  /** @type {Experiment[]} */
  const experiments = index.experiments;
  /** @type {Entry[]} */
  const series = columns.id.map((/** @type {string} */ id, /** @type {number} */ at) => {
    const experiment = experiments[columns.experiment[at]] ?? { name: "", title: "", page: "" };
    const [name, metric] = [String(columns.name[at]), String(columns.metric[at])];
    const facts = { experiment: experiment.name, metric, ...columns.labels[at] };
    const extra = { verdict: columns.verdict[at], grade: columns.grade[at] };
    return {
      id,
      name,
      metric,
      experiment: experiment.name,
      title: experiment.title,
      page: experiment.page,
      unit: columns.unit[at],
      direction: columns.direction[at],
      labels: { ...facts, ...withoutEmpty(extra) },
      text: `${name} ${metric} ${experiment.name} ${experiment.title} ${id}`,
      last: columns.last[at],
      low: columns.low[at],
      high: columns.high[at],
      lastStamp: columns.last_stamp[at],
      change: columns.change[at],
      verdict: extra.verdict ?? "",
      grade: extra.grade ?? "",
      visible: columns.visible[at],
      noise: columns.noise?.[at] ?? null,
      ratioNoise: columns.ratio_noise?.[at] ?? null,
      points: columns.points[at],
      pack: columns.pack?.[at] ?? "",
      past: Boolean(columns.past[at]),
      incident: columns.incident[at],
    };
  });
  const made = {
    night: index.night ?? "",
    title: index.title ?? "",
    stamps: index.stamps ?? [],
    nights: index.nights ?? {},
    years: index.years ?? [],
    incidents: index.incidents ?? [],
    experiments,
    series,
    byId: new Map(series.map((one) => [one.id, one])),
  };
  catalogues.set(index, made);
  return made;
}

/** @param {Record<string, string | null | undefined>} facts */
function withoutEmpty(facts) {
  /** @type {Record<string, string>} */
  const kept = {};
  for (const [key, value] of Object.entries(facts)) if (value) kept[key] = value;
  return kept;
}

/**
 * A series from 1 January of last year on, or, with `past` where it has one, of all time.
 *
 * @param {Entry} entry
 * @param {{past?: boolean}} [how]
 * @returns {Promise<Shard>}
 */
export async function readSeries(entry, { past = false } = {}) {
  const recent = readJson(`series/${entry.pack}.json`);
  if (!past || !entry.past) return unpack(await recent, entry);
  return joined(unpack(await readJson(`series/${entry.pack}-past.json`), entry), unpack(await recent, entry));
}

/** @type {WeakMap<object, Shard>} */
const unpacked = new WeakMap();

/**
 * A series of a file as columns of its own.
 *
 * @param {any} pack
 * @param {Entry} entry
 * @returns {Shard}
 */
function unpack(pack, entry) {
  const own = pack.series.find((/** @type {any} */ one) => one.id === entry.id);
  if (!own) throw new SiteError(`series/${entry.pack}.json holds no ${entry.id}. ${AGAIN}`);
  const known = unpacked.get(own);
  if (known) return known;
  const at = own.at ?? pack.stamp.map((/** @type {string} */ _, /** @type {number} */ place) => place);
  const of = (/** @type {any} */ column) => (Array.isArray(column) ? column : at.map(() => column));
  const here = (/** @type {any} */ column) =>
    Array.isArray(column) ? at.map((/** @type {number} */ place) => column[place]) : of(column);
  const value = of(own.value);
  const shard = {
    ...own,
    stamp: here(pack.stamp),
    tvm: here(pack.tvm),
    machine: here(pack.machine),
    tvms: pack.tvms,
    machines: pack.machines,
    value,
    low: addDistances(value, of(own.low), -1),
    high: addDistances(value, of(own.high), 1),
    std: addDistances(value, of(own.std), 0),
    samples: of(own.samples),
    code: of(own.code),
  };
  unpacked.set(own, shard);
  return shard;
}

/**
 * What lies so far from values, in parts of each; of 0, as it is. way: 0 of a distance itself.
 *
 * @param {readonly (number | null)[]} values
 * @param {readonly (number | null)[]} distances
 * @param {-1 | 0 | 1} way
 */
function addDistances(values, distances, way) {
  return distances.map((distance, at) => {
    const value = values[at] ?? null;
    if (value === null || distance === null) return null;
    const far = value ? (Math.abs(value) * distance) / FINE : distance;
    return Number((way ? value + way * far : far).toPrecision(9));
  });
}

/**
 * What was measured on a night: its experiments, and columns of all its points.
 *
 * @param {string} stamp
 */
export async function readColumns(stamp) {
  const path = `columns/${stamp.slice(0, 7)}.json`;
  const block = await readJson(path);
  /** @type {Map<number, number | null>} */
  const codes = new Map();
  for (const [at, night] of Object.entries(block.nights)) {
    const count = typeof night.at === "number" ? night.at : 0;
    /** @type {number[]} */
    const places = count ? [...Array(count).keys()] : night.at || [];
    places.forEach((place, point) => {
      if (night.code[point] !== 0) codes.set(place, night.code[point]);
    });
    if (at !== stamp) continue;
    return {
      stamp,
      experiments: night.experiments,
      id: places.map((place) => block.id[place]),
      value: night.value,
      low: addDistances(night.value, night.low, -1),
      high: addDistances(night.value, night.high, 1),
      code: places.map((place) => block.code[(codes.get(place) ?? 0) - 1] ?? null),
    };
  }
  throw Object.assign(new SiteError(`This site has no night ${stamp} in ${path}.`), { isMissing: true });
}

/** @type {WeakMap<object, Shard>} */
const joins = new WeakMap();

/**
 * Two shards of a series as one, the older first.
 *
 * @param {Shard} past
 * @param {Shard} recent
 * @returns {Shard}
 */
export function joined(past, recent) {
  const known = joins.get(recent);
  if (known) return known;
  const tvms = merged(past.tvms, recent.tvms);
  const machines = merged(past.machines, recent.machines);
  const firstCode = 1 + Math.max(0, ...past.code.map((code) => code ?? 0));
  /** @type {Shard} */
  const whole = {
    ...recent,
    stamp: [...past.stamp, ...recent.stamp],
    value: [...past.value, ...recent.value],
    low: [...past.low, ...recent.low],
    high: [...past.high, ...recent.high],
    std: [...past.std, ...recent.std],
    samples: [...past.samples, ...recent.samples],
    tvms,
    tvm: [...moved(past.tvm, past.tvms, tvms), ...moved(recent.tvm, recent.tvms, tvms)],
    machines,
    machine: [...moved(past.machine, past.machines, machines), ...moved(recent.machine, recent.machines, machines)],
    code: [...past.code, ...recent.code.map((code) => (code === null ? null : code + firstCode))],
    steps: [...past.steps, ...recent.steps.filter((step) => !past.steps.some((old) => old.stamp === step.stamp))],
    annotations: once([...past.annotations, ...recent.annotations]),
    incidents: once([...past.incidents, ...recent.incidents]),
  };
  joins.set(recent, whole);
  return whole;
}

/** @param {string[]} first @param {string[]} second */
function merged(first, second) {
  return [...new Set([...first, ...second])];
}

/** @param {(number | null)[]} column @param {string[]} from @param {string[]} to */
function moved(column, from, to) {
  const places = from.map((value) => to.indexOf(value));
  return column.map((at) => (at === null ? null : (places[at] ?? null)));
}

/** @template T @param {T[]} items @returns {T[]} */
function once(items) {
  return [...new Map(items.map((item) => [JSON.stringify(item), item])).values()];
}

/**
 * The records of one experiment in one night.
 *
 * @param {string} stamp
 * @param {Entry} entry
 */
export function readReceipt(stamp, entry) {
  const file = entry.page.replace(/^.*\//, "").replace(/\.html$/, "");
  return readJson(`receipts/${stamp}/${file}.json`);
}

/**
 * `task` for each item, at most `width` at a time; `done` hears of each end.
 *
 * @template T
 * @param {readonly T[]} items
 * @param {number} width
 * @param {(item: T) => Promise<void>} task
 */
export async function eachOf(items, width, task) {
  const waiting = [...items];
  const worker = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await task(item);
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker));
}
