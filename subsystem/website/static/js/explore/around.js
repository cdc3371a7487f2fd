// @ts-check
/** What stands around the explorer's chart: picker, controls, card, strip of all nights, legend, tables. */

import { placesInView } from "../chart/axis.js";
import { pointCard } from "../chart/card.js";
import { nearestNight } from "../chart/options.js";
import { placeCard } from "../chart/placing.js";
import { byId, copyButton, debounced } from "../dom.js";
import { groupChoices, legend, markKinds, outsideNote, ruleOf } from "./legend.js";
import { makePicker } from "./picker.js";
import { seconds, stampOf } from "../format.js";
import { makeOverview } from "../chart/overview.js";
import { stateOf } from "./view.js";
import { changeState, currentState } from "../state.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../chart/chart.js").View} View */
/** @typedef {import("../chart/chart.js").Place} Place */
/** @typedef {ReturnType<typeof surround>} Around */

const DAY_S = 86400;

/**
 * @param {import("../data.js").Catalogue} catalogue
 * @param {ReturnType<typeof import("../chart/chart.js").makeChart>} chart
 * @param {() => View | null} current what the chart shows
 */
export function surround(catalogue, chart, current) {
  const places = {
    chart: byId("chart", HTMLElement),
    card: byId("card", HTMLElement),
    legend: byId("legend", HTMLElement),
    marks: byId("mark-kinds", HTMLElement),
    values: byId("values", HTMLDetailsElement),
    happened: byId("happened", HTMLDetailsElement),
    from: byId("from", HTMLInputElement),
    to: byId("to", HTMLInputElement),
    log: byId("log", HTMLInputElement),
    relative: byId("relative", HTMLInputElement),
    band: byId("band", HTMLInputElement),
    rule: byId("rule", HTMLElement),
    x: byId("x", HTMLSelectElement),
    y: byId("y", HTMLSelectElement),
    group: byId("group", HTMLSelectElement),
    outside: byId("outside", HTMLElement),
  };
  /** @type {Place | null} where the arrow keys are */
  let cursor = null;
  /** @type {string[]} what the address names */
  let shownIds = [];
  const overview = makeOverview(byId("overview", HTMLElement), (range) => {
    const view = current();
    if (view) changeState(stateOf(view, range));
  });
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
    const line = current()?.lines[place.line];
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
    const line = place && current()?.lines[place.line];
    const spot = place && chart.positionOf(place);
    places.card.hidden = !line || !spot;
    places.card.classList.toggle("is-pinned", kept);
    if (!place || !line || !spot) return;
    const at = line.places[place.index] ?? -1;
    const close = () => {
      changeState({ at: "" }, { replace: true });
      places.chart.focus();
    };
    places.card.replaceChildren(...pointCard(line, at, kept ? close : null));
    places.card.classList.remove("is-below");
    const size = { width: places.card.offsetWidth, height: places.card.offsetHeight };
    const found = placeCard(size, chart.room(), spot, chart.pathOf(place.line));
    places.card.classList.toggle("is-below", !found || (kept && found.hidden > 0));
    if (found) places.card.style.transform = `translate(${Math.round(found.left)}px, ${Math.round(found.top)}px)`;
  };

  const fillTables = async () => {
    if (!current() || !(places.values.open || places.happened.open)) return;
    const { marksTable, valuesTable } = await import("../chart/table.js"); // most readers never open a table
    const view = current();
    if (!view) return;
    if (places.values.open) byId("values-body", HTMLElement).replaceChildren(valuesTable(view));
    if (places.happened.open) byId("happened-body", HTMLElement).replaceChildren(marksTable(view));
  };

  /** @param {number} nights */
  const lastNights = (nights) => {
    const end = current()?.axis.ends[1] ?? seconds(catalogue.night);
    changeState({ from: stampOf(end - nights * DAY_S), to: "" });
  };

  for (const name of /** @type {const} */ (["x", "y", "group"]))
    places[name].addEventListener("change", () => changeState({ [name]: places[name].value }));
  places.log.addEventListener("change", () => changeState({ scale: places.log.checked ? "log" : "" }));
  places.relative.addEventListener("change", () => changeState({ relative: places.relative.checked ? "1" : "" }));
  places.band.addEventListener("change", () => changeState({ band: places.band.checked ? "" : "0" }));
  for (const side of /** @type {const} */ (["from", "to"])) {
    places[side].addEventListener("change", () => {
      if (isDay(places[side].value)) changeState({ [side]: places[side].value });
      else places[side].reportValidity();
    });
    places[side].addEventListener("input", () => {
      const said = isDay(places[side].value) ? "" : "A day is written as 2026-11-21.";
      places[side].setCustomValidity(said);
    });
  }
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
    const view = current();
    if (!view || event.ctrlKey || event.metaKey || event.altKey) return;
    const done = onKey(event.key, view);
    if (done) event.preventDefault();
  });

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
    if (zoom !== undefined) changeState(stateOf(shown, [from + (to - from) * zoom, to - (to - from) * zoom]));
    else if (key === "0") changeState({ from: "", to: "" });
    else if (key === "Enter" && cursor) pin(cursor);
    else if (key === "Escape") changeState({ at: "" }, { replace: true });
    else return false;
    return true;
  };

  /** To another night in view that the line has. @param {Place} now @param {number} step @param {View} shown */
  const move = (now, step, shown) => {
    const line = shown.lines[now.line];
    const [first, end] = placesInView(shown);
    if (!line || first >= end) return false;
    let index = Math.max(first, Math.min(end - 1, now.index + step));
    while (step && index > first && index < end - 1 && (line.places[index] ?? -1) < 0) index += Math.sign(step);
    const found = nearestNight(line, index);
    if (found === null || found < first || found >= end) return false;
    if (currentState()["at"]) changeState({ at: "" }, { replace: true });
    cursor = { line: now.line, index: found };
    chart.pointAt(cursor);
    showCard(cursor, false);
    return true;
  };

  const again = debounced(() => {
    const view = current();
    if (view) places.legend.replaceChildren(...legend(view, shownIds));
  }, 0);
  document.addEventListener("themechange", again);
  places.chart.addEventListener("mouseleave", () => {
    const view = current();
    if (!view || pinned(view)) return;
    chart.pointAt(null);
    showCard(null, false);
  });

  return {
    pin,
    /** The mouse is near a point, or near none. @param {Place | null} place */
    point(place) {
      const view = current();
      if (!view || pinned(view)) return;
      cursor = place ?? cursor;
      chart.pointAt(place);
      showCard(place, false);
    },
    /** The chart was drawn anew: a kept card moves with its point. */
    drawn() {
      const view = current();
      if (!view) return;
      const kept = pinned(view);
      places.outside.replaceChildren(...outsideNote(view.y === "all" ? 0 : chart.outside()));
      chart.pointAt(kept);
      showCard(kept, true);
    },
    /**
     * What the address asks for, before its series are read.
     *
     * @param {State} state
     * @param {string[]} ids
     */
    pick(state, ids) {
      shownIds = ids;
      picker.show(state["q"] ?? "", ids);
      for (const name of /** @type {const} */ (["x", "y"])) {
        const known = [...places[name].options].some((option) => option.value === state[name]);
        places[name].value = known ? (state[name] ?? "") : "";
      }
      places.log.checked = state["scale"] === "log";
      places.relative.checked = state["relative"] === "1" || Boolean(state["group"]);
      places.relative.disabled = Boolean(state["group"]);
      places.band.checked = state["band"] !== "0";
    },
    /**
     * What the chart shows now.
     *
     * @param {State} state
     * @param {string[]} ids
     */
    show(state, ids) {
      const view = current();
      if (!view) return void places.legend.replaceChildren();
      const [from, to] = view.period;
      const [first, last] = view.axis.ends;
      overview.show(view);
      this.drawn();
      places.from.value = dayField(Math.max(from, first));
      places.to.value = dayField(Math.min(to, last));
      places.legend.replaceChildren(...legend(view, ids));
      places.marks.replaceChildren(...markKinds(view, state));
      places.rule.textContent = ruleOf(view);
      places.group.replaceChildren(...groupChoices(view));
      void fillTables();
    },
  };
}

/** Whether it is a day as the fields want it, or none. @param {string} text */
function isDay(text) {
  const time = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) / 1e3 : NaN;
  return text === "" || (Number.isFinite(time) && dayField(time) === text);
}

/** @param {number} time */
function dayField(time) {
  return new Date(time * 1e3).toISOString().slice(0, 10);
}
