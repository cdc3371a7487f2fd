// @ts-check
/** The page receipt.html: one point with everything that reproduces it. */

import { receiptUrl } from "../chart/card.js";
import { csvOfSeries } from "../csv.js";
import { readCatalogue, readReceipt, readSeries, root, SiteError } from "../data.js";
import { byId, copyButton, downloadButton, el } from "../dom.js";
import { needsPast, recentBoundary } from "../explore/view.js";
import { change, day, interval, moment, quantity, seconds } from "../format.js";
import { fromPrevious } from "../points.js";
import { factList, operatorsPart, passesPart, samplesPart } from "./parts.js";
import { onState } from "../state.js";

/** @typedef {import("../data.js").Entry} Entry */
/** @typedef {import("../data.js").Shard} Shard */
/** @typedef {import("../state.js").State} State */

const MONTH_S = 30 * 86400;
const IDENTITY = [
  "workload",
  "workload_args",
  "engine",
  "engine_version",
  "engine_config",
  "target",
  "build_config",
  "runtime_config",
  "execution_config",
  "env_name",
  "hw_model",
];

export async function start() {
  const catalogue = await readCatalogue();
  const boundary = recentBoundary(catalogue.night || "2000");
  const place = byId("receipt", HTMLElement);
  let turn = 0;

  /** @param {State} state */
  const show = async (state) => {
    turn += 1;
    const mine = turn;
    const entry = catalogue.byId.get(state["series"] ?? "");
    const stamp = state["night"] || entry?.lastStamp || "";
    if (!entry) {
      place.replaceChildren(
        el(
          "p",
          {},
          state["series"]
            ? `This site has no series ${state["series"]}. `
            : "A receipt belongs to one point of one series. ",
          el("a", { href: `${root()}explore.html` }, "Pick a point in the explorer."),
          " Clicking a point leads here.",
        ),
      );
      return;
    }
    const [shard, receipt] = await Promise.all([
      readSeries(entry, { past: needsPast({ from: stamp }, boundary) }),
      readReceipt(stamp, entry).catch((error) => {
        if (error instanceof SiteError) return error;
        throw error;
      }),
    ]);
    if (mine !== turn) return;
    document.title = `Receipt: ${entry.name}, ${day(stamp)}`;
    place.replaceChildren(...parts(entry, shard, stamp, receipt));
    document.body.dataset["drawn"] = "1";
  };
  onState(
    (state) =>
      void show(state).catch((error) => {
        place.replaceChildren(el("p", { class: "trouble" }, error instanceof Error ? error.message : String(error)));
        if (!(error instanceof SiteError)) throw error;
      }),
  );
}

/**
 * @param {Entry} entry
 * @param {Shard} shard
 * @param {string} stamp
 * @param {any} receipt its JSON, or why there is none
 */
function parts(entry, shard, stamp, receipt) {
  const at = shard.stamp.indexOf(stamp);
  const found = receipt instanceof SiteError ? null : recordOf(receipt, entry);
  const all = [head(entry, shard, stamp, at)];
  if (receipt instanceof SiteError)
    all.push(section("What reproduces it", el("p", {}, noReceipt(receipt, entry, stamp))));
  else {
    if (receipt.night?.partial === true) all.push(partial(receipt));
    all.push(repeat(receipt, entry));
    if (found?.samples_ms?.length && entry.unit === "ms" && entry.metric === "run_time")
      all.push(section("Raw samples", samplesPart(found.samples_ms)));
    else if (entry.metric === "run_time")
      all.push(section("Raw samples", el("p", {}, receipt.samples_words || "No samples of this point were kept.")));
    if (found?.operators?.length)
      all.push(section("Where the time goes", operatorsPart(found.operators, found.runs ?? 1)));
    if (found?.passes?.length) all.push(section("Where compiling spends its time", passesPart(found.passes)));
    all.push(trace(receipt, entry, stamp));
  }
  all.push(el("div", { class: "receipt-facts" }, ...facts(receipt, found, entry, shard, at)));
  return all;
}

/** @param {any} receipt */
function partial(receipt) {
  const [measured, lost] = [receipt.records.length, receipt.failures.length];
  return section(
    "Partial data",
    el("p", {}, `The run was interrupted: ${measured} of ${measured + lost} points were finished.`),
  );
}

/** @param {any} receipt @param {Entry} entry */
function recordOf(receipt, entry) {
  return receipt.records?.find((/** @type {any} */ one) => Object.values(one.series).includes(entry.id)) ?? null;
}

/** @param {SiteError} error @param {Entry} entry @param {string} stamp */
function noReceipt(error, entry, stamp) {
  return (
    `${error.message} Receipts are kept for recent nights only. The record of this night is in the home, in ` +
    `results/experiments/data/${entry.experiment}/data_${stamp}.json.`
  );
}

/** @param {Entry} entry @param {Shard} shard @param {string} stamp @param {number} at */
function head(entry, shard, stamp, at) {
  const value = shard.value[at];
  const from = seconds(stamp);
  const around = Number.isFinite(from) ? `&from=${isoDay(from - MONTH_S)}&to=${isoDay(from + MONTH_S)}` : "";
  const [before, after] = [shard.stamp[at - 1], at < 0 ? undefined : shard.stamp[at + 1]];
  const near = (/** @type {string | undefined} */ other, /** @type {string} */ words) =>
    other ? el("a", { href: receiptUrl(other, entry.id) }, words) : null;
  const bounds = interval(shard.low[at], shard.high[at], shard.unit);
  return el(
    "section",
    { class: "receipt-head" },
    el("h1", {}, entry.name),
    el(
      "p",
      { class: "value" },
      el("strong", {}, at < 0 ? "No value this night" : quantity(value, shard.unit)),
      bounds ? el("span", {}, ` 95 %: ${bounds}`) : null,
      at < 0 ? null : el("span", {}, ` ${change(fromPrevious(shard, at))} from the night before`),
    ),
    el("p", { class: "quiet" }, `${moment(stamp)} · ${entry.title}`),
    el(
      "p",
      { class: "links" },
      el(
        "a",
        {
          href: `${root()}explore.html#series=${encodeURIComponent(entry.id)}${around}&at=${encodeURIComponent(`${entry.id}@${stamp}`)}`,
        },
        "In the explorer",
      ),
      el("a", { href: `${root()}nights/${stamp}.html` }, "This night"),
      el("a", { href: `${root()}${entry.page}` }, "This experiment"),
      near(before, "← the night before"),
      near(after, "the next night →"),
    ),
  );
}

/** @param {any} receipt @param {Entry} entry */
function repeat(receipt, entry) {
  const command = receipt.repeat ? `${receipt.repeat} ${entry.id}` : "";
  if (!command) {
    const why = "It cannot be remeasured because its night did not record config, seed, TVM and code.";
    return section("To repeat it", el("p", {}, why));
  }
  return section(
    "To repeat it",
    el(
      "div",
      { class: "command" },
      el("pre", { tabindex: 0, role: "group", "aria-label": "Command" }, el("code", {}, command)),
      copyButton("Copy", () => command),
    ),
    el(
      "p",
      { class: "quiet" },
      "This command remeasures the series with the TVM, code, config and seed of that night. HOME is the home’s folder.",
    ),
  );
}

/** @param {any} receipt @param {Entry} entry @param {string} stamp */
function trace(receipt, entry, stamp) {
  if (!receipt.trace)
    return section("Trace", el("p", {}, receipt.trace_words || "Traces are kept for the latest night only."));
  const folder = `${root()}receipts/${encodeURIComponent(stamp)}/`;
  return section(
    "Trace",
    el(
      "p",
      {},
      el("a", { href: folder + encodeURIComponent(receipt.trace), download: "" }, "Download the trace"),
      ` of ${entry.title}. Open ui.perfetto.dev in the browser and drop the file into its window; it is processed locally and not uploaded.`,
    ),
  );
}

/** @param {any} receipt @param {any} found @param {Entry} entry @param {Shard} shard @param {number} at */
function facts(receipt, found, entry, shard, at) {
  const record = found?.record;
  const identity = record ? Object.fromEntries(IDENTITY.map((key) => [key, record[key]])) : entry.labels;
  const [tvm, machine] = [shard.tvms[shard.tvm[at] ?? -1], shard.machines[shard.machine[at] ?? -1]];
  const known = receipt instanceof SiteError ? {} : receipt;
  const lists = [
    section(
      "What was measured",
      factList({ experiment: entry.experiment, metric: entry.metric, series: entry.id, ...identity }),
    ),
    section("By what", factList({ tvm: known.tvm_hash ?? tvm ?? "", machine: machine ?? "", ...(known.night ?? {}) })),
  ];
  if (record)
    lists.push(
      section(
        "The record's numbers",
        factList({
          timestamp: record.timestamp,
          execution_elapsed_ms_mean: record.execution_elapsed_ms_mean,
          execution_elapsed_ms_std: record.execution_elapsed_ms_std,
          ...record.additional_info,
        }),
      ),
    );
  if (known.environment && Object.keys(known.environment).length)
    lists.push(section("Environment", factList(known.environment)));
  if (known.data_file)
    lists.push(
      section(
        "Where it is kept",
        el(
          "p",
          {},
          el("code", {}, known.data_file),
          " in the home. The series: ",
          downloadButton("CSV", `${entry.id}.csv`, "text/csv", async () =>
            csvOfSeries(await readSeries(entry, { past: true })),
          ),
          ", in ",
          el("a", { href: `${root()}series/${entry.pack}.js` }, `series/${entry.pack}.js`),
          ".",
        ),
      ),
    );
  return lists;
}

/** @param {string} title @param {...Node} body */
function section(title, ...body) {
  return el("section", {}, el("h2", {}, title), ...body);
}

/** @param {number} time */
function isoDay(time) {
  return new Date(time * 1e3).toISOString().slice(0, 10);
}
