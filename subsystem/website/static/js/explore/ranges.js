// @ts-check
/** The period in view as two fields, and buttons for the usual ones. */

import { byId } from "../dom.js";
import { stampOf } from "../format.js";
import { rove } from "../roving.js";
import { changeState } from "../state.js";

const DAY_S = 86400;

/** @param {() => number} newest the last night that there is */
export function makeRanges(newest) {
  const places = { from: byId("from", HTMLInputElement), to: byId("to", HTMLInputElement) };

  /** @param {number} nights */
  const lastNights = (nights) => {
    const end = newest();
    changeState({ from: stampOf(end - nights * DAY_S), to: "" });
  };

  for (const side of /** @type {const} */ (["from", "to"])) {
    places[side].addEventListener("change", () => {
      if (isDay(places[side].value)) changeState({ [side]: places[side].value });
      else places[side].reportValidity();
    });
    places[side].addEventListener("input", () => {
      const said = isDay(places[side].value) ? "" : "Enter the day as YYYY-MM-DD.";
      places[side].setCustomValidity(said);
    });
  }
  for (const button of document.querySelectorAll("[data-nights]")) {
    const nights = button instanceof HTMLElement ? button.dataset["nights"] : "";
    button.addEventListener("click", () => {
      if (nights === "all") changeState({ from: "all", to: "" });
      else if (nights === "month") changeState(monthBefore(newest()));
      else if (nights) lastNights(Number(nights));
      else changeState({ from: "", to: "" });
    });
  }
  rove(byId("ranges", HTMLElement), "button");

  return {
    /** @param {import("../chart/chart.js").View} view */
    show({ period, axis }) {
      places.from.value = dayField(Math.max(period[0], axis.ends[0]));
      places.to.value = dayField(Math.min(period[1], axis.ends[1]));
    },
  };
}

/** The month before that of `time`, whole. @param {number} time */
function monthBefore(time) {
  const date = new Date(time * 1e3);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const [from = "", to = ""] = [Date.UTC(year, month - 1, 1), Date.UTC(year, month, 0)].map((at) => dayField(at / 1e3));
  return { from, to };
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
