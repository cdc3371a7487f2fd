// @ts-check
/** What stands around the explorer's chart: picker, controls, strip of all nights, legend, tables. */

import { byId, copyButton, debounced } from "../dom.js";
import { groupChoices, legend, markKinds, outsideNote, ruleOf } from "./legend.js";
import { makePicker } from "./picker.js";
import { makePointing } from "./pointing.js";
import { makeRanges } from "./ranges.js";
import { seconds } from "../format.js";
import { rove } from "../roving.js";
import { makeOverview } from "../chart/overview.js";
import { stateOf } from "./view.js";
import { changeState } from "../state.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../chart/chart.js").View} View */
/** @typedef {ReturnType<typeof surround>} Around */

/**
 * @param {import("../data.js").Catalogue} catalogue
 * @param {ReturnType<typeof import("../chart/chart.js").makeChart>} chart
 * @param {() => View | null} current what the chart shows
 */
export function surround(catalogue, chart, current) {
  const places = {
    legend: byId("legend", HTMLElement),
    marks: byId("mark-kinds", HTMLElement),
    values: byId("values", HTMLDetailsElement),
    happened: byId("happened", HTMLDetailsElement),
    log: byId("log", HTMLInputElement),
    relative: byId("relative", HTMLInputElement),
    band: byId("band", HTMLInputElement),
    rule: byId("rule", HTMLElement),
    x: byId("x", HTMLSelectElement),
    y: byId("y", HTMLSelectElement),
    group: byId("group", HTMLSelectElement),
    outside: byId("outside", HTMLElement),
    multiples: byId("multiples-on", HTMLInputElement),
  };
  let outside = 0;
  const pointing = makePointing(chart, current);
  const ranges = makeRanges(() => current()?.axis.ends[1] ?? seconds(catalogue.night));
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
      onSave: async (entries) => {
        const view = current();
        if (view) await (await import("./export.js")).saveCsvOf(catalogue, entries, view);
      },
      onSeries: (ids) => changeState({ series: ids.join(",") || "none", at: "" }),
    },
  );

  const fillTables = async () => {
    if (!current() || !(places.values.open || places.happened.open)) return;
    const { marksTable, valuesTable } = await import("../chart/table.js"); // most readers never open a table
    const view = current();
    if (!view) return;
    if (places.values.open) byId("values-body", HTMLElement).replaceChildren(valuesTable(view));
    if (places.happened.open) byId("happened-body", HTMLElement).replaceChildren(marksTable(view));
  };

  for (const name of /** @type {const} */ (["x", "y", "group"]))
    places[name].addEventListener("change", () => changeState({ [name]: places[name].value }));
  places.multiples.addEventListener("change", () => changeState({ multiples: places.multiples.checked ? "1" : "" }));
  places.log.addEventListener("change", () => changeState({ scale: places.log.checked ? "log" : "" }));
  places.relative.addEventListener("change", () => changeState({ relative: places.relative.checked ? "1" : "" }));
  places.band.addEventListener("change", () => changeState({ band: places.band.checked ? "" : "0" }));
  places.values.addEventListener("toggle", () => void fillTables());
  places.happened.addEventListener("toggle", () => void fillTables());
  for (const name of /** @type {const} */ (["savePng", "saveSvg", "saveCsv"]))
    byId(name, HTMLButtonElement).addEventListener("click", async () => {
      const view = current();
      if (view) (await import("./export.js"))[name](view);
    });
  rove(byId("list", HTMLElement), "input");
  rove(byId("facets", HTMLElement), "summary, button");
  rove(places.marks, "input");
  rove(places.legend, "button");
  byId("copy-link", HTMLElement).replaceChildren(copyButton("Copy link", () => location.href));
  const again = debounced(() => {
    const view = current();
    if (view) places.legend.replaceChildren(...legend(view, shownIds));
  }, 0);
  document.addEventListener("themechange", again);
  return {
    ...pointing,
    /** The chart was drawn anew. */
    drawn() {
      const view = current();
      if (!view) return;
      const count = view.y === "all" || view.multiples ? 0 : chart.outside();
      if (count !== outside) places.outside.replaceChildren(...outsideNote(count));
      outside = count;
      pointing.drawn();
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
      places.multiples.checked = state["multiples"] === "1";
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
      overview.show(view);
      this.drawn();
      ranges.show(view);
      places.legend.replaceChildren(...legend(view, ids));
      places.marks.replaceChildren(...markKinds(view, state));
      places.rule.textContent = ruleOf(view);
      places.group.replaceChildren(...groupChoices(view));
      void fillTables();
    },
  };
}
