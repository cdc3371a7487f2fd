// @ts-check
/** The page explore.html: pick series, see them over nights. All that it shows is in the address. */

import { makeChart } from "./chart.js";
import { pointCard } from "./chart_card.js";
import { nearestNight } from "./chart_nearest.js";
import { eachOf, readCatalogue, readSeries, SiteError } from "./data.js";
import { byId, copyButton, debounced } from "./dom.js";
import { legend, markKinds, ruleOf } from "./explore_legend.js";
import { makePicker, MOST_CHARTED } from "./explore_picker.js";
import { makeView, needsPast, recentBoundary } from "./explore_view.js";
import { counted, seconds, stampOf } from "./format.js";
import { makeOverview } from "./overview.js";
import { changeState, currentState, onState, parts } from "./state.js";

/** @typedef {import("./data.js").Entry} Entry */
/** @typedef {import("./data.js").Shard} Shard */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./chart.js").View} View */
/** @typedef {import("./chart.js").Place} Place */

const DAY_S = 86400;
const WIDTH = 8;
/** What tests/benchmarks/website_browser.py measures. */
const FIRST_CHART = "first chart";

export async function start() {
  const places = {
    chart: byId("chart", HTMLElement),
    overview: byId("overview", HTMLElement),
    card: byId("card", HTMLElement),
    legend: byId("legend", HTMLElement),
    message: byId("message", HTMLElement),
    marks: byId("mark-kinds", HTMLElement),
    values: byId("values", HTMLDetailsElement),
    happened: byId("happened", HTMLDetailsElement),
    from: byId("from", HTMLInputElement),
    to: byId("to", HTMLInputElement),
    log: byId("log", HTMLInputElement),
    relative: byId("relative", HTMLInputElement),
    band: byId("band", HTMLInputElement),
    picker: byId("picker", HTMLDetailsElement),
    rule: byId("rule", HTMLElement),
  };
  const catalogue = await readCatalogue();
  const boundary = recentBoundary(catalogue.night || "2000");
  /** @type {View | null} */
  let view = null;
  /** @type {Place | null} where the arrow keys are */
  let cursor = null;
  let turn = 0;

  const chart = makeChart(places.chart, {
    onRange: (range) => changeState(range ? { from: stampOf(range[0]), to: stampOf(range[1]) } : { from: "", to: "" }),
    onPoint: (place) => {
      if (!view || pinned(view)) return;
      cursor = place ?? cursor;
      chart.pointAt(place);
      showCard(place, false);
    },
    onPin: (place) => pin(place),
    onDrawn: () => {
      if (!performance.getEntriesByName(FIRST_CHART).length) performance.mark(FIRST_CHART);
      if (!view) return;
      const kept = pinned(view);
      chart.pointAt(kept);
      showCard(kept, true);
    },
  });
  const overview = makeOverview(places.overview, ([from, to]) => changeState({ from: stampOf(from), to: stampOf(to) }));
  const picker = makePicker(
    {
      count: byId("count", HTMLElement),
      facets: byId("facets", HTMLElement),
      list: byId("list", HTMLElement),
      input: byId("q", HTMLInputElement),
    },
    catalogue.series,
    {
      onQuery: (text) => changeState({ q: text }, { replace: true }),
      onSeries: (ids) => changeState({ series: ids.join(",") || "none", at: "" }),
    },
  );

  /** @param {Place} place */
  const pin = (place) => {
    const line = view?.lines[place.line];
    const stamp = line?.shard.stamp[line.places[place.index] ?? -1];
    if (line && stamp) changeState({ at: `${line.entry.id}@${stamp}` }, { replace: true });
  };

  /** The point that the address names. @param {View} shown @returns {Place | null} */
  const pinned = (shown) => {
    const [id, stamp = ""] = (currentState()["at"] ?? "").split("@");
    const line = shown.lines.findIndex((one) => one.entry.id === id);
    const at = shown.lines[line]?.shard.stamp.indexOf(stamp) ?? -1;
    const index = at < 0 ? -1 : (shown.lines[line]?.places.indexOf(at) ?? -1);
    return index < 0 ? null : { line, index };
  };

  /** @param {Place | null} place @param {boolean} kept */
  const showCard = (place, kept) => {
    const line = place && view?.lines[place.line];
    const spot = place && chart.positionOf(place);
    places.card.hidden = !line || !spot;
    places.card.classList.toggle("is-pinned", kept);
    if (!place || !line || !spot) return;
    const at = line.places[place.index] ?? -1;
    const close = () => {
      changeState({ at: "" }, { replace: true });
      places.chart.focus();
    };
    places.card.replaceChildren(...pointCard(line, place.line, at, kept ? close : null));
    const room = places.chart.clientWidth;
    const width = places.card.offsetWidth;
    const left = spot.x + 16 + width <= room ? spot.x + 16 : Math.max(0, spot.x - 16 - width);
    const top = Math.min(Math.max(0, spot.y - 40), Math.max(0, places.chart.clientHeight - places.card.offsetHeight));
    places.card.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  };

  /** @param {State} state @returns {string[]} */
  const idsOf = (state) => {
    if (state["series"] === "none") return [];
    const asked = parts(state["series"]).slice(0, MOST_CHARTED);
    if (asked.length) return asked;
    const first = mostPressing(catalogue.series);
    return first ? [first.id] : [];
  };

  /** @param {State} state */
  const show = async (state) => {
    turn += 1;
    const mine = turn;
    const ids = idsOf(state);
    if (mine > 1) picker.show(state["q"] ?? "", ids); // the first time, the chart comes before the list
    places.log.checked = state["scale"] === "log";
    places.relative.checked = state["relative"] === "1";
    places.band.checked = state["band"] !== "0";
    const wanted = ids.flatMap((id) => catalogue.byId.get(id) ?? []);
    const past = needsPast(state, boundary);
    /** @type {Map<string, Shard>} */
    const shards = new Map();
    const gone = ids.length - wanted.length;
    const lost = `${counted(gone, "series", "series")} of this link ${gone === 1 ? "is" : "are"} not on this site.`;
    const faults = gone ? [lost] : [];
    await eachOf(wanted, WIDTH, async (entry) => {
      try {
        shards.set(entry.id, await readSeries(entry, { past }));
      } catch (error) {
        if (!(error instanceof SiteError)) throw error;
        faults.push(error.message);
      }
    });
    if (mine !== turn) return;
    const series = wanted.flatMap((entry) => {
      const shard = shards.get(entry.id);
      return shard ? [{ entry, shard }] : [];
    });
    const empty = catalogue.series.length ? "Tick series to see them here." : "This home has no series yet.";
    places.message.textContent = faults.slice(0, 3).join(" ") || (series.length ? "" : empty);
    places.message.hidden = !places.message.textContent;
    byId("plots", HTMLElement).hidden = !series.length;
    view = null;
    places.legend.replaceChildren();
    if (series.length) {
      view = makeView(state, series);
      chart.show(view);
    }
    if (mine === 1) {
      await painted();
      if (mine !== turn) return;
      picker.show(state["q"] ?? "", ids);
    }
    if (!view) return;
    overview.show(view);
    document.body.dataset["drawn"] = String(view.lines.length);
    const [from, to] = view.range;
    places.from.value = dayField(Math.max(from, view.xs[0] ?? from));
    places.to.value = dayField(Math.min(to, view.xs[view.xs.length - 1] ?? to));
    places.legend.replaceChildren(...legend(view, ids));
    places.marks.replaceChildren(...markKinds(view, state));
    places.rule.textContent = ruleOf(view);
    void fillTables();
  };

  const fillTables = async () => {
    if (!view || !(places.values.open || places.happened.open)) return;
    const { marksTable, valuesTable } = await import("./chart_table.js"); // most readers never open a table
    if (!view) return;
    if (places.values.open) byId("values-body", HTMLElement).replaceChildren(valuesTable(view));
    if (places.happened.open) byId("happened-body", HTMLElement).replaceChildren(marksTable(view));
  };

  /** @param {number} nights */
  const lastNights = (nights) => {
    const end = view?.xs[view.xs.length - 1] ?? seconds(catalogue.night);
    changeState({ from: stampOf(end - nights * DAY_S), to: "" });
  };

  places.log.addEventListener("change", () => changeState({ scale: places.log.checked ? "log" : "" }));
  places.relative.addEventListener("change", () => changeState({ relative: places.relative.checked ? "1" : "" }));
  places.band.addEventListener("change", () => changeState({ band: places.band.checked ? "" : "0" }));
  places.from.addEventListener("change", () => changeState({ from: places.from.value }));
  places.to.addEventListener("change", () => changeState({ to: places.to.value }));
  places.values.addEventListener("toggle", () => void fillTables());
  places.happened.addEventListener("toggle", () => void fillTables());
  for (const button of document.querySelectorAll("[data-nights]")) {
    const nights = button instanceof HTMLElement ? button.dataset["nights"] : "";
    button.addEventListener("click", () => {
      if (nights === "all") changeState({ from: "all", to: "" });
      else if (nights) lastNights(Number(nights));
      else changeState({ from: "", to: "" });
    });
  }
  byId("copy-link", HTMLElement).replaceChildren(copyButton("Copy link", () => location.href));
  places.chart.addEventListener("keydown", (event) => {
    if (!view || event.ctrlKey || event.metaKey || event.altKey) return;
    const done = onKey(event.key, view);
    if (done) event.preventDefault();
  });
  if (matchMedia("(max-width: 60rem)").matches) places.picker.open = false;

  /** @param {string} key @param {View} shown */
  const onKey = (key, shown) => {
    const [from, to] = shown.range;
    const now = cursor ?? pinned(shown) ?? { line: 0, index: shown.xs.length - 1 };
    const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
    if (key in steps) return move(now, steps[/** @type {keyof typeof steps} */ (key)], shown);
    if (key === "ArrowUp" || key === "ArrowDown") {
      const count = shown.lines.length;
      const line = (now.line + (key === "ArrowDown" ? 1 : count - 1)) % count;
      return move({ line, index: now.index }, 0, shown);
    }
    const zoom = { "+": 0.25, "=": 0.25, "-": -0.5 }[key];
    if (zoom !== undefined)
      changeState({ from: stampOf(from + (to - from) * zoom), to: stampOf(to - (to - from) * zoom) });
    else if (key === "0") changeState({ from: "", to: "" });
    else if (key === "Enter" && cursor) pin(cursor);
    else if (key === "Escape") changeState({ at: "" }, { replace: true });
    else return false;
    return true;
  };

  /** @param {Place} now @param {number} step @param {View} shown */
  const move = (now, step, shown) => {
    const line = shown.lines[now.line];
    if (!line) return false;
    let index = Number.isFinite(step) ? now.index + step : step < 0 ? 0 : shown.xs.length - 1;
    while (step && index > 0 && index < shown.xs.length - 1 && (line.places[index] ?? -1) < 0)
      index += Math.sign(step) || 1;
    const found = nearestNight(line, Math.max(0, Math.min(shown.xs.length - 1, index)));
    if (found === null) return false;
    if (currentState()["at"]) changeState({ at: "" }, { replace: true });
    cursor = { line: now.line, index: found };
    chart.pointAt(cursor);
    showCard(cursor, false);
    return true;
  };

  const again = debounced(() => view && places.legend.replaceChildren(...legend(view, idsOf(currentState()))), 0);
  document.addEventListener("themechange", again);
  places.chart.addEventListener("mouseleave", () => {
    if (!view || pinned(view)) return;
    chart.pointAt(null);
    showCard(null, false);
  });
  onState((state) => void show(state).catch(report));
}

/** @param {unknown} error */
function report(error) {
  const place = byId("message", HTMLElement);
  place.textContent = error instanceof Error ? error.message : String(error);
  place.hidden = false;
  if (!(error instanceof SiteError)) throw error;
}

/** What the page shows unasked: what needs attention most, which the catalogue begins with. @param {Entry[]} entries */
function mostPressing(entries) {
  return entries[0] ?? null;
}

/** When what was drawn is on the screen. */
function painted() {
  return new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
}

/** @param {number} time */
function dayField(time) {
  return new Date(time * 1e3).toISOString().slice(0, 10);
}
