// @ts-check
/** The page compare.html: two nights, TVM versions or machines, series by series. */

import { historyChart } from "./history.js";
import { readNight, stampsOf } from "./nights.js";
import { byNeed, csv, makeRows, markdown, stateOf } from "./rows.js";
import { chips, groupTable, rowTable, summary } from "./tables.js";
import { readCatalogue, readJson, readSeries, SiteError } from "../data.js";
import { byId, copyButton, debounced, downloadButton, el } from "../dom.js";
import { moment, seconds } from "../format.js";
import { matches, parseQuery } from "../picker.js";
import { formatSide, parseSide, REAL_SCALES } from "../ratios.js";
import { changeState, currentState, onState } from "../state.js";

/** @typedef {import("./rows.js").Row} Row */
/** @typedef {import("../ratios.js").Side} Side */
/** @typedef {import("../state.js").State} State */
/** @typedef {import("../data.js").Catalogue} Catalogue */

const RULE =
  "A change is real if its 95 % interval excludes 0 and it exceeds the night-to-night scatter of the series: " +
  `more than ${REAL_SCALES} x noise x sqrt(1/nights of A + 1/nights of B). Where both sides were measured in turn with the ` +
  "same reference, the change is that of the ratios to it, which the machine's hour does not move. Exact numbers have no " +
  "noise: any difference is real. A series is not judged until its noise is known.";

export async function start() {
  const catalogue = await readCatalogue();
  const places = {
    progress: byId("progress", HTMLElement),
    rows: byId("rows", HTMLElement),
    groups: byId("groups", HTMLElement),
    verdict: byId("verdict", HTMLElement),
    chips: byId("chips", HTMLElement),
    q: byId("q", HTMLInputElement),
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
  /** @type {Row[]} */
  let rows = [];
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
    places.by.value = state["by"] || "experiment";
    if (places.q.value !== (state["q"] ?? "")) places.q.value = state["q"] ?? "";
    if (!a || !b) {
      places.progress.textContent = b
        ? "This home has only one night so far, so there is nothing to compare yet."
        : "This home has no nights to compare yet.";
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
    places.progress.textContent = "Reading \u2026";
    const [left, right] = await Promise.all([measured(a), measured(b)]);
    if (mine !== turn) return;
    rows = makeRows(catalogue.series, left, right);
    const empty = [left, right].filter(({ nights }) => !nights.length).map(({ side }) => sideInWords(side, catalogue));
    places.progress.textContent = empty.length ? `No experiment wrote data in ${empty.join(" and ")}.` : "";
    draw();
    document.body.dataset["drawn"] = String(rows.length);
  };

  /** @param {Side} side */
  const measured = async (side) => {
    const nights = await Promise.all((await stampsOf(side, catalogue)).map(readNight));
    return { side, nights: nights.flatMap((night) => night ?? []) };
  };

  const draw = () => {
    const state = currentState();
    const { a, b } = sidesOf(state);
    if (!a || !b) return;
    const query = parseQuery(state["q"] ?? "");
    const fitting = byNeed(rows.filter((row) => matches(row.entry, query)));
    const names = { a: sideInWords(a, catalogue), b: sideInWords(b, catalogue) };
    const chosen = state["show"] ?? "";
    const shown = chosen ? fitting.filter((row) => stateOf(row) === chosen) : fitting;
    places.verdict.replaceChildren(...summary(fitting, names));
    places.chips.replaceChildren(...chips(fitting, chosen, (show) => changeState({ show })));
    places.groups.replaceChildren(groupTable(fitting, state["by"] || "experiment"));
    byId("basis", HTMLElement).hidden = !shown.some((row) => row.basis === "reference");
    places.rows.replaceChildren(rowTable(shown, { a, b, open: openHistory }));
    places.copy.replaceChildren(
      copyButton("Copy as Markdown", () => markdown(shown, { ...names, url: location.href, rule: RULE })),
      downloadButton("Download CSV", "compare.csv", "text/csv", () => csv(shown)),
    );
  };

  /** @param {Row} row @param {HTMLElement} place */
  const openHistory = async ({ entry, a, b }, place) => {
    try {
      const marked = [a, b].flatMap((side) => side?.stamp ?? []);
      place.append(historyChart(await readSeries(entry, { past: true }), marked));
    } catch (error) {
      if (!(error instanceof SiteError)) throw error;
      place.textContent = error.message;
    }
  };

  for (const side of /** @type {const} */ (["a", "b"])) {
    const field = fields[side];
    field.kind.addEventListener("change", () => {
      const [first] = choices(field.kind.value, catalogue);
      if (first) changeState({ [side]: sideOf(field.kind.value, first) });
    });
    field.value.addEventListener("change", () => changeState({ [side]: sideOf(field.kind.value, field.value.value) }));
    field.value.addEventListener("focus", () => void offerOldNights(field), { once: true });
    for (const step of /** @type {const} */ ([-1, 1])) {
      const button = byId(`${side}-${step < 0 ? "before" : "after"}`, HTMLButtonElement);
      button.addEventListener("click", () => void go(side, step));
    }
  }

  /** @param {(typeof fields)["a"]} field */
  const offerOldNights = async (field) => {
    if (field.kind.value !== "night") return;
    const stamps = (await allStamps(catalogue)).filter((stamp) => !catalogue.stamps.includes(stamp)).reverse();
    field.list.append(...stamps.map((stamp) => el("option", { value: stamp, label: moment(stamp) })));
  };

  /** The night before or after the one that the side is. @param {"a" | "b"} side @param {-1 | 1} step */
  const go = async (side, step) => {
    const now = sidesOf(currentState())[side];
    if (now?.kind !== "night") return;
    const known = catalogue.stamps.indexOf(now.value) + step;
    const stamps = catalogue.stamps[known] && known !== step - 1 ? catalogue.stamps : await allStamps(catalogue);
    const at = stamps.indexOf(now.value);
    const next = at < 0 ? undefined : stamps[at + step];
    if (next) changeState({ [side]: next });
  };
  byId("swap", HTMLButtonElement).addEventListener("click", () => {
    const { a, b } = sidesOf(currentState());
    if (a && b) changeState({ a: formatSide(b), b: formatSide(a) });
  });
  places.by.addEventListener("change", () => changeState({ by: places.by.value }));
  places.q.addEventListener(
    "input",
    debounced(() => changeState({ q: places.q.value }, { replace: true }), 120),
  );
  onState((state) => void show(state));
}

/** The stamps of all nights, oldest first; of the last 30 alone where the others cannot be read. @param {Catalogue} catalogue */
async function allStamps(catalogue) {
  try {
    const years = await Promise.all(catalogue.years.map((year) => readJson(`nights/${year}.json`)));
    return years.flatMap((year) => Object.keys(year.nights)).sort();
  } catch (error) {
    if (error instanceof SiteError) return catalogue.stamps; // any stamp can be typed nevertheless
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
