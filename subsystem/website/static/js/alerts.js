// @ts-check
/** Incidents by state, experiment, owner, month and size; the address holds what is asked for. */

import { el } from "./dom.js";
import { counted } from "./format.js";
import { changeState, currentState } from "./state.js";

/** @typedef {{state: string, experiments: string[], owner: string, since: string, size: number}} Facts */
const FIELDS = /** @type {const} */ ({
  state: ["State", (/** @type {Facts} */ one) => [one.state]],
  experiment: ["Experiment", (/** @type {Facts} */ one) => one.experiments],
  owner: ["Owner", (/** @type {Facts} */ one) => [one.owner]],
  since: ["Since", (/** @type {Facts} */ one) => [one.since.slice(0, 7)]],
});
const LEAST_PERCENT = [1, 2, 5, 10, 20];

/** Offer the filters, and show what the address asks for. */
export function startFilters() {
  const place = /** @type {HTMLElement} */ (document.querySelector("[data-filter]"));
  const incidents = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("[data-incident]")]);
  if (!incidents.length) return;
  const facts = new Map(incidents.map((one) => [one, read(one)]));
  const said = el("span", { class: "quiet", role: "status" });
  const show = () => {
    const asked = currentState();
    for (const one of incidents) one.hidden = !fits(/** @type {Facts} */ (facts.get(one)), asked);
    for (const list of document.querySelectorAll(".ledger"))
      /** @type {HTMLElement} */ (list).hidden = !list.querySelector("[data-incident]:not([hidden])");
    const left = incidents.filter((one) => !one.hidden).length;
    said.textContent = Object.keys(asked).length ? `${left} of ${counted(incidents.length, "incident")}` : "";
  };
  for (const [name, [label, valuesOf]] of Object.entries(FIELDS)) {
    const values = [...new Set([...facts.values()].flatMap(valuesOf))].filter(Boolean).sort();
    if (!values.length) continue;
    if (name === "since") values.reverse();
    place.append(choice(name, label, values.map((value) => [value, name === "since" ? `${value} or later` : value])));
  }
  place.append(choice("size", "Size", LEAST_PERCENT.map((least) => [String(least), `${least} % or more`])), said);
  place.hidden = false;
  show();

  /** @param {string} name @param {string} label @param {string[][]} values */
  function choice(name, label, values) {
    const options = [["", "all"], ...values].map(([value, words]) => el("option", { value: value ?? "" }, words));
    const select = el("select", {}, ...options);
    select.value = currentState()[name] ?? "";
    select.addEventListener("change", () => {
      changeState({ [name]: select.value }, { replace: true });
      show();
    });
    return el("label", {}, `${label} `, select);
  }
}

/** @param {HTMLElement} one @returns {Facts} */
function read({ dataset }) {
  const { state = "", owner = "", since = "" } = dataset;
  return { state, owner, since, experiments: JSON.parse(dataset["experiments"] ?? "[]"), size: Number(dataset["size"]) };
}

/** @param {Facts} one @param {import("./state.js").State} asked */
function fits(one, { state, experiment, owner, since = "", size = "0" }) {
  const isIts = (!state || one.state === state) && (!owner || one.owner === owner);
  const isThere = !experiment || one.experiments.includes(experiment);
  return isIts && isThere && one.since.slice(0, 7) >= since && !(100 * one.size < Number(size));
}
