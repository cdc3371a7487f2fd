// @ts-check
/** Points of the chart by mouse, finger or arrow keys, and the card that tells of one. */

import { placesInView } from "../chart/axis.js";
import { nearestNight } from "../chart/options.js";
import { byId } from "../dom.js";
import { stateOf } from "./view.js";
import { changeState, currentState } from "../state.js";

/** @typedef {import("../chart/chart.js").View} View */
/** @typedef {import("../chart/chart.js").Place} Place */

/** The point that the address names. @param {View} shown @returns {Place | null} */
function pinned(shown) {
  const asked = currentState()["at"] ?? "";
  const [id, stamp] = [asked.slice(0, Math.max(0, asked.lastIndexOf("@"))), asked.slice(asked.lastIndexOf("@") + 1)];
  const line = shown.lines.findIndex((one) => one.entry.id === id);
  const at = shown.lines[line]?.shard.stamp.indexOf(stamp) ?? -1;
  const index = at < 0 ? -1 : (shown.lines[line]?.places.indexOf(at) ?? -1);
  return index < 0 ? null : { line, index };
}

/**
 * @param {ReturnType<typeof import("../chart/chart.js").makeChart>} chart
 * @param {() => View | null} current what the chart shows
 */
export function makePointing(chart, current) {
  const places = { chart: byId("chart", HTMLElement), card: byId("card", HTMLElement) };
  /** @type {Place | null} where the arrow keys are */
  let cursor = null;
  /** @type {string} what the chart showed when they were moved */
  let shownThen = "";
  /** Whether the card stands below the chart: from when it would have hidden a part of its line, for as long as that is shown. */
  let docked = false;
  let turn = 0;

  /** @param {Place} place */
  const pin = (place) => {
    const line = current()?.lines[place.line];
    const stamp = line?.shard.stamp[line.places[place.index] ?? -1];
    if (line && stamp) changeState({ at: `${line.entry.id}@${stamp}` }, { replace: true });
  };

  /** @param {Place | null} place @param {boolean} kept */
  const showCard = async (place, kept) => {
    const mine = (turn += 1);
    if (!place && docked) return void places.card.classList.add("is-away"); // what is below keeps its place
    if (!place) return void (places.card.hidden = true);
    const [{ pointCard }, { placeCard }] = await Promise.all([import("../chart/card.js"), import("../chart/placing.js")]);
    if (mine !== turn) return;
    const line = place && current()?.lines[place.line];
    const spot = place && chart.positionOf(place);
    places.card.hidden = !line || !spot;
    places.card.classList.toggle("is-pinned", kept);
    places.card.classList.remove("is-away");
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
    docked ||= !found || found.hidden > 0;
    places.card.classList.toggle("is-below", docked);
    if (found) places.card.style.transform = `translate(${Math.round(found.left)}px, ${Math.round(found.top)}px)`;
  };

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
    void showCard(cursor, false);
    return true;
  };

  places.chart.addEventListener("mouseleave", () => {
    const view = current();
    if (!view || pinned(view)) return;
    chart.pointAt(null);
    void showCard(null, false);
  });

  return {
    pin,
    /** The mouse is near a point, or near none. @param {Place | null} place */
    point(place) {
      const view = current();
      if (!view || pinned(view)) return;
      cursor = place ?? cursor;
      chart.pointAt(place);
      void showCard(place, false);
    },
    /** The chart was drawn anew: a kept card moves with its point. */
    drawn() {
      const view = current();
      if (!view) return;
      const shown = [view.axis.kind, ...view.lines.map((line) => line.entry.id)].join();
      if (shown !== shownThen) {
        cursor = null; // its place means another point now
        docked = false;
        shownThen = shown;
      }
      const kept = pinned(view);
      chart.pointAt(kept);
      void showCard(kept, true);
    },
  };
}
