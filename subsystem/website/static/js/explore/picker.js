// @ts-check
/** The part of the explorer where series are picked: a query with a live count, key=value buttons, a list to tick. */

import { el } from "../dom.js";
import { change, counted, quantity } from "../format.js";
import { MOST_CHARTED } from "./view.js";
import { asksFor, facets, matches, parseQuery, toggled } from "../picker.js";

/** @typedef {import("../data.js").Entry} Entry */

const MOST_LISTED = 100;
const MOST_VALUES = 12;

/**
 * @param {{count: HTMLElement, facets: HTMLElement, list: HTMLElement, input: HTMLInputElement}} places
 * @param {Entry[]} entries
 * @param {{onQuery: (text: string) => void, onSeries: (ids: string[]) => void,
 *   onSave: (entries: Entry[]) => void}} told
 */
export function makePicker(places, entries, told) {
  /** @type {string | null} */
  let shownQuery = null;
  /** @type {Entry[]} */
  let found = [];
  /** @type {Set<string>} keys whose values are all shown */
  const opened = new Set();
  places.input.addEventListener("input", () => told.onQuery(places.input.value));
  if (places.input.value && document.activeElement === places.input) told.onQuery(places.input.value); // typed before

  /** @param {string} text */
  const showFacets = (text) => {
    const query = parseQuery(text);
    places.facets.replaceChildren(
      ...[...facets(entries, query)].map(([key, values]) => {
        const asked = query.keys.has(key);
        const all = opened.has(key);
        const some = all ? values : values.filter(([value], at) => at < MOST_VALUES || asksFor(query, key, value));
        return el(
          "details",
          { open: asked || all || key === "experiment" || key === "metric" },
          el("summary", {}, key, el("span", { class: "count" }, ` ${values.length}`)),
          el(
            "div",
            { class: "chips" },
            ...some.map(([value, count]) =>
              el(
                "button",
                {
                  type: "button",
                  class: "chip",
                  "aria-pressed": String(asksFor(query, key, value)),
                  onclick: () => told.onQuery(toggled(text, key, value)),
                },
                el("bdi", {}, value === "" ? "(empty)" : value),
                el("span", { class: "count" }, ` ${count}`),
              ),
            ),
            some.length < values.length
              ? el(
                  "button",
                  {
                    type: "button",
                    class: "chip more",
                    onclick: () => {
                      opened.add(key);
                      showFacets(text);
                    },
                  },
                  `${values.length - some.length} more`,
                )
              : null,
          ),
        );
      }),
    );
  };

  /** @param {string[]} ids */
  const showList = (ids) => {
    const charted = new Set(ids);
    const listed = found.slice(0, MOST_LISTED);
    const fit = found.filter((entry) => !charted.has(entry.id)).slice(0, Math.max(0, MOST_CHARTED - ids.length));
    const setOnly = found.slice(0, MOST_CHARTED).map((entry) => entry.id);
    const words =
      found.length > MOST_CHARTED
        ? `Show the first ${MOST_CHARTED}`
        : `Show ${found.length === 1 ? "it" : `all ${found.length}`}`;
    const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset["id"] : undefined;
    places.list.replaceChildren(
      el(
        "div",
        { class: "list-buttons" },
        found.length ? el("button", { type: "button", onclick: () => told.onSeries(setOnly) }, words) : null,
        fit.length && ids.length && fit.length < found.length
          ? el(
              "button",
              { type: "button", onclick: () => told.onSeries([...ids, ...fit.map((one) => one.id)]) },
              `Add ${fit.length}`,
            )
          : null,
        ids.length ? el("button", { type: "button", onclick: () => told.onSeries([]) }, "Clear the chart") : null,
        found.length
          ? el(
              "button",
              { type: "button", title: "Their values on the nights in view", onclick: () => told.onSave(found) },
              `CSV of all ${found.length}`,
            )
          : null,
      ),
      el(
        "ul",
        { class: "series-list" },
        ...listed.map((entry) =>
          el(
            "li",
            {},
            el(
              "label",
              {},
              el("input", {
                type: "checkbox",
                "data-id": entry.id,
                checked: charted.has(entry.id),
                onchange: () =>
                  told.onSeries(charted.has(entry.id) ? ids.filter((id) => id !== entry.id) : [...ids, entry.id]),
              }),
              el("bdi", { class: "series-name" }, entry.name),
              el(
                "span",
                { class: "series-value" },
                `${quantity(entry.last, entry.unit)}${entry.change === null ? "" : `, ${change(entry.change)} from the level before`}`,
              ),
            ),
          ),
        ),
      ),
      found.length > listed.length
        ? el("p", { class: "quiet" }, `${found.length - listed.length} more. Narrow the query to see them.`)
        : el("span", {}),
    );
    if (focused)
      for (const box of places.list.querySelectorAll("input")) if (box.dataset["id"] === focused) box.focus();
  };

  return {
    /**
     * @param {string} text the query
     * @param {string[]} ids what is on the chart
     */
    show(text, ids) {
      if (text !== shownQuery) {
        shownQuery = text;
        const query = parseQuery(text);
        found = entries.filter((entry) => matches(entry, query));
        if (places.input.value !== text) places.input.value = text;
        places.count.textContent = `${found.length} of ${counted(entries.length, "series", "series")} match`;
        const focused = focusedChip();
        showFacets(text);
        if (focused) refocus(focused);
      }
      showList(ids);
    },
  };

  function focusedChip() {
    const active = document.activeElement;
    return active instanceof HTMLElement && places.facets.contains(active)
      ? active.textContent?.replace(/ \d+$/, "")
      : null;
  }

  /** @param {string} words */
  function refocus(words) {
    for (const button of places.facets.querySelectorAll("button")) {
      if (button.textContent?.replace(/ \d+$/, "") === words) return button.focus();
    }
  }
}
