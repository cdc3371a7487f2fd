// @ts-check
/** The page compare.html: two nights, TVM versions or machines, series by series. */

import { arranged, joined, makeRow, markdown } from "./rows.js";
import { groupTable, rowTable, verdict } from "./tables.js";
import { eachOf, readCatalogue, readJson, readSeries, SiteError } from "../data.js";
import { byId, copyButton, debounced, el } from "../dom.js";
import { needsPast, recentBoundary } from "../explore/view.js";
import { counted, moment, seconds } from "../format.js";
import { matches, parseQuery } from "../picker.js";
import { formatSide, parseSide, REAL_SCALES } from "../ratios.js";
import { changeState, currentState, onState } from "../state.js";

/** @typedef {import("./rows.js").Row} Row */
/** @typedef {import("../ratios.js").Side} Side */
/** @typedef {import("../state.js").State} State */
/** @typedef {import("../data.js").Catalogue} Catalogue */

const WIDTH = 12;
const REDRAW_MS = 250;
const RULE =
  "A change is real where the 95 % interval of the ratio leaves out 1 and the ratio is further from 1 than the series " +
  `scatters from night to night: more than ${REAL_SCALES} x noise x sqrt(1/nights of A + 1/nights of B). No interval is ` +
  "taken as narrower than that scatter makes it. Of a series with fewer than 10 nights and no noise known, nobody can tell.";

export async function start() {
  const catalogue = await readCatalogue();
  const boundary = recentBoundary(catalogue.night || "2000");
  const places = {
    progress: byId("progress", HTMLElement),
    rows: byId("rows", HTMLElement),
    groups: byId("groups", HTMLElement),
    verdict: byId("verdict", HTMLElement),
    q: byId("q", HTMLInputElement),
    real: byId("real", HTMLInputElement),
    order: byId("order", HTMLSelectElement),
    by: byId("by", HTMLSelectElement),
    copy: byId("copy", HTMLElement),
  };
  const fields = {
    a: {
      kind: byId("a-kind", HTMLSelectElement),
      value: byId("a-value", HTMLInputElement),
      list: byId("a-list", HTMLElement),
    },
    b: {
      kind: byId("b-kind", HTMLSelectElement),
      value: byId("b-value", HTMLInputElement),
      list: byId("b-list", HTMLElement),
    },
  };
  byId("real-rule", HTMLElement).textContent = RULE;
  /** @type {Map<string, Row>} */
  let rows = new Map();
  let compared = "";
  let turn = 0;

  /** @param {State} state */
  const sidesOf = (state) => {
    const [before, last] = catalogue.stamps.slice(-2);
    const b = parseSide(state["b"]) ?? (last || before ? parseSide(last ?? before) : null);
    const a = parseSide(state["a"]) ?? (before && last ? parseSide(before) : null);
    return { a, b };
  };

  /** @param {State} state */
  const show = async (state) => {
    const { a, b } = sidesOf(state);
    for (const [side, field] of /** @type {const} */ ([
      [a, fields.a],
      [b, fields.b],
    ])) {
      field.kind.value = side?.kind ?? "night";
      field.value.value = side ? sideField(side, catalogue) : "";
      field.list.replaceChildren(
        ...choices(field.kind.value, catalogue).map((one) =>
          el("option", { value: one, label: field.kind.value === "night" ? moment(one) : one }),
        ),
      );
    }
    places.real.checked = state["real"] === "1";
    places.order.value = state["order"] || "worst";
    places.by.value = state["by"] || "experiment";
    if (places.q.value !== (state["q"] ?? "")) places.q.value = state["q"] ?? "";
    if (!a || !b) {
      places.progress.textContent = b
        ? "This home has only one night so far: there is nothing to compare it with yet."
        : "This home has no night to compare yet.";
      return;
    }
    const sides = `${formatSide(a)} ${formatSide(b)}`;
    if (sides !== compared) await load(a, b, sides);
    else draw();
  };

  /** @param {Side} a @param {Side} b @param {string} sides */
  const load = async (a, b, sides) => {
    turn += 1;
    const mine = turn;
    compared = sides;
    rows = new Map();
    const old = [a, b].some(
      (side) => side.kind === "night" && needsPast({ from: side.value.slice(0, 15) + "Z" }, boundary),
    );
    const faults = new Map();
    let read = 0;
    let drawn = performance.now();
    await eachOf(catalogue.series, WIDTH, async (entry) => {
      if (mine !== turn) return;
      try {
        rows.set(
          entry.id,
          makeRow(entry, await readSeries(entry, { past: old || a.kind !== "night" || b.kind !== "night" }), a, b),
        );
      } catch (error) {
        if (!(error instanceof SiteError)) throw error;
        faults.set(entry.id, error.message);
      }
      read += 1;
      if (mine === turn && performance.now() - drawn > REDRAW_MS) {
        drawn = performance.now();
        places.progress.textContent = `${read} of ${catalogue.series.length} series read …`;
      }
    });
    if (mine !== turn) return;
    const [fault] = faults.values();
    places.progress.textContent = fault
      ? `${counted(faults.size, "series", "series")} could not be read: ${fault}`
      : "";
    document.body.dataset["drawn"] = String(rows.size);
    draw();
  };

  const draw = () => {
    const state = currentState();
    const { a, b } = sidesOf(state);
    if (!a || !b) return;
    const query = parseQuery(state["q"] ?? "");
    const read = joined(catalogue.series.flatMap((entry) => rows.get(entry.id) ?? []));
    const fitting = read.filter((row) => matches(row.entry, query));
    const names = { a: sideInWords(a, catalogue), b: sideInWords(b, catalogue) };
    const how = { order: state["order"] || "worst", real: state["real"] === "1" };
    const shown = arranged(fitting, how);
    places.verdict.replaceChildren(...verdict(fitting, names));
    places.groups.replaceChildren(groupTable(fitting, state["by"] || "experiment"));
    places.rows.replaceChildren(rowTable(shown, a, b));
    places.copy.replaceChildren(
      copyButton("Copy as Markdown", () => markdown(shown, { ...names, url: location.href, rule: RULE })),
    );
  };

  for (const side of /** @type {const} */ (["a", "b"])) {
    const field = fields[side];
    field.kind.addEventListener("change", () => {
      const [first] = choices(field.kind.value, catalogue);
      if (first) changeState({ [side]: sideOf(field.kind.value, first) });
    });
    field.value.addEventListener("change", () => changeState({ [side]: sideOf(field.kind.value, field.value.value) }));
  }
  byId("swap", HTMLButtonElement).addEventListener("click", () => {
    const { a, b } = sidesOf(currentState());
    if (a && b) changeState({ a: formatSide(b), b: formatSide(a) });
  });
  places.real.addEventListener("change", () => changeState({ real: places.real.checked ? "1" : "" }));
  places.order.addEventListener("change", () => changeState({ order: places.order.value }));
  places.by.addEventListener("change", () => changeState({ by: places.by.value }));
  places.q.addEventListener(
    "input",
    debounced(() => changeState({ q: places.q.value }, { replace: true }), 120),
  );
  onState((state) => void show(state));
  void offerOldNights(catalogue).then((stamps) => {
    for (const field of [fields.a, fields.b]) {
      if (field.kind.value === "night") field.list.append(...stamps.map((stamp) => el("option", { value: stamp })));
    }
  });
}

/** The stamps of nights before the last 30, of the newest year that can be read. @param {Catalogue} catalogue */
async function offerOldNights(catalogue) {
  const year = catalogue.years[catalogue.years.length - 1];
  if (year === undefined) return [];
  try {
    const nights = Object.keys((await readJson(`nights/${year}.json`)).nights);
    return nights
      .filter((stamp) => !catalogue.stamps.includes(stamp))
      .sort()
      .reverse();
  } catch (error) {
    if (error instanceof SiteError) return []; // any stamp can be typed nevertheless
    throw error;
  }
}

/** @param {string} kind @param {Catalogue} catalogue */
function choices(kind, catalogue) {
  if (kind === "night") return [...catalogue.stamps].reverse();
  const nights = [...catalogue.stamps].reverse().flatMap((stamp) => catalogue.nights[stamp] ?? []);
  const all = kind === "tvm" ? nights.flatMap((night) => night.tvm) : nights.map((night) => night.machine);
  return [...new Set(all.filter(Boolean))];
}

/** @param {string} kind @param {string} value */
function sideOf(kind, value) {
  return formatSide({ kind: kind === "tvm" || kind === "machine" ? kind : "night", value: value.trim() });
}

/** @param {Side} side @param {Catalogue} catalogue */
function sideField(side, catalogue) {
  return side.kind === "night" && !catalogue.stamps.includes(side.value) && !Number.isFinite(seconds(side.value))
    ? side.value.slice(0, 40)
    : side.value;
}

/** @param {Side} side @param {Catalogue} catalogue */
function sideInWords(side, catalogue) {
  if (side.kind === "tvm") return `all nights of TVM ${side.value}`;
  if (side.kind === "machine") return `all nights on ${side.value}`;
  const tvm = catalogue.nights[side.value]?.tvm.join(", ");
  return `the night of ${moment(side.value)}${tvm ? ` (TVM ${tvm})` : ""}`;
}
