// @ts-check
/** The page explore.html: pick series, see them over nights. All that it shows is in the address. */

import { makeChart } from "../chart/chart.js";
import { eachOf, readCatalogue, readSeries, SiteError } from "../data.js";
import { byId } from "../dom.js";
import { dateAxis } from "../chart/axis.js";
import { makeView, MOST_CHARTED, needsPast, recentBoundary, stateOf } from "./view.js";
import { counted } from "../format.js";
import { changeState, onState, parts } from "../state.js";

/** @typedef {import("../data.js").Entry} Entry */
/** @typedef {import("../data.js").Shard} Shard */
/** @typedef {import("../state.js").State} State */
/** @typedef {import("../chart/chart.js").View} View */
/** @typedef {import("./around.js").Around} Around */

const WIDTH = 8;
/** What tests/benchmarks/website_browser.py measures. */
const FIRST_CHART = "first chart";

export async function start() {
  const message = byId("message", HTMLElement);
  const catalogue = await readCatalogue();
  if (matchMedia("(max-width: 60rem)").matches) byId("picker", HTMLDetailsElement).open = false;
  const boundary = recentBoundary(catalogue.night || "2000");
  /** @type {View | null} */
  let view = null;
  /** @type {Around | null} picker, strip, legend, card: there when the first chart is on the screen */
  let around = null;
  /** @type {Promise<Around> | null} */
  let coming = null;
  /** @type {ReturnType<typeof import("./multiples.js").makeMultiples> | null} */
  let multiples = null;
  let turn = 0;

  const chart = makeChart(byId("chart", HTMLElement), {
    onRange: (range) => changeState(range && view ? stateOf(view, range) : { from: "", to: "" }),
    onPoint: (place) => around?.point(place),
    onPin: (place) => around?.pin(place),
    onDrawn: () => {
      if (!performance.getEntriesByName(FIRST_CHART).length) performance.mark(FIRST_CHART);
      around?.drawn();
    },
  });

  const surroundings = () =>
    (coming ??= painted()
      .then(() => import("./around.js"))
      .then(({ surround }) => (around = surround(catalogue, chart, () => view))));

  /** @param {State} state */
  const show = async (state) => {
    turn += 1;
    const mine = turn;
    const ids = idsOf(state, catalogue.series);
    const early = around !== null;
    around?.pick(state, ids);
    const wanted = ids.flatMap((id) => catalogue.byId.get(id) ?? []);
    const gone = ids.length - wanted.length;
    const lost = `${counted(gone, "series", "series")} of this link ${gone === 1 ? "is" : "are"} not on this site.`;
    const axisOf = await axisFor(state["x"]);
    const { series, faults } = await readAll(wanted, needsPast(state, boundary));
    if (gone) faults.unshift(lost);
    if (mine !== turn) return;
    const empty = catalogue.series.length ? "Tick series to see them here." : "This home has no series yet.";
    message.textContent = faults.slice(0, 3).join(" ") || (series.length ? "" : empty);
    message.hidden = !message.textContent;
    byId("plots", HTMLElement).hidden = !series.length;
    const shown = series.length ? makeView(state, series, axisOf) : null;
    view = shown?.group ? (await import("./groups.js")).withMeans(shown) : shown;
    if (mine !== turn) return;
    byId("multiples", HTMLElement).hidden = !view?.multiples;
    byId("chart-place", HTMLElement).hidden = Boolean(view?.multiples);
    if (view?.multiples) {
      const { makeMultiples } = await import("./multiples.js");
      multiples ??= makeMultiples(byId("multiples", HTMLElement));
      multiples.show(view);
    } else if (view) chart.show(view);
    const all = await surroundings();
    if (mine !== turn) return;
    if (!early) all.pick(state, ids); // the first time, the chart comes before the list
    all.show(state, ids);
    if (view) document.body.dataset["drawn"] = String(view.lines.length);
  };

  onState((state) => void show(state).catch(report));
}

/**
 * The series that the state asks for; unasked what needs attention most, with which the catalogue begins.
 *
 * @param {State} state
 * @param {Entry[]} entries
 */
function idsOf(state, entries) {
  if (state["series"] === "none") return [];
  const asked = parts(state["series"]).slice(0, MOST_CHARTED);
  return asked.length ? asked : entries.slice(0, 1).map((entry) => entry.id);
}

/** @param {string | undefined} kind */
async function axisFor(kind) {
  if (kind !== "night" && kind !== "commit") return dateAxis;
  const { commitAxis, nightAxis } = await import("../chart/slots.js");
  return kind === "night" ? nightAxis : commitAxis;
}

/**
 * The series that can be read, in their order, and sentences about the others.
 *
 * @param {Entry[]} wanted
 * @param {boolean} past
 */
async function readAll(wanted, past) {
  /** @type {Map<string, Shard>} */
  const shards = new Map();
  /** @type {string[]} */
  const faults = [];
  await eachOf(wanted, WIDTH, async (entry) => {
    try {
      shards.set(entry.id, await readSeries(entry, { past }));
    } catch (error) {
      if (!(error instanceof SiteError)) throw error;
      faults.push(error.message);
    }
  });
  const series = wanted.flatMap((entry) => {
    const shard = shards.get(entry.id);
    return shard ? [{ entry, shard }] : [];
  });
  return { series, faults };
}

/** @param {unknown} error */
function report(error) {
  const place = byId("message", HTMLElement);
  place.textContent = error instanceof Error ? error.message : String(error);
  place.hidden = false;
  if (!(error instanceof SiteError)) throw error;
}

/** When what was drawn is on the screen. */
function painted() {
  return new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
}
