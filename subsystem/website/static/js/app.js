// @ts-check
/**
 * What every page gets where modules run: its own part, and keys: / searches, j and k walk incidents, g and a letter goes
 * to a page, ? says all this.
 */

import { readCatalogue, root, SiteError } from "./data.js";
import { copyButton, el } from "./dom.js";

/** @type {Record<string, () => Promise<{start: () => Promise<void>}>>} */
const PAGES = {
  explore: () => import("./explore/explore.js"),
  compare: () => import("./compare/compare.js"),
  receipt: () => import("./receipt/receipt.js"),
};

const PLACES = {
  h: ["index.html", "tonight"],
  l: ["live.html", "what runs now"],
  e: ["explore.html", "explorer"],
  c: ["compare.html", "compare"],
  a: ["alerts.html", "alerts"],
  s: ["scores.html", "scores"],
  m: ["machines.html", "machines"],
  n: ["nights/index.html", "nights"],
};
const G_WAITS_MS = 1200;
const FEWEST_TO_SORT = 4;
async function startPage() {
  const load = PAGES[document.body.dataset["page"] ?? ""];
  if (!load) return;
  try {
    void readCatalogue().catch(() => null); // begun before the modules are there; whoever needs it hears of a fault
    const page = await load();
    document.getElementById("needs-script")?.setAttribute("hidden", "");
    document.getElementById("app")?.removeAttribute("hidden");
    await page.start();
  } catch (error) {
    const place = document.getElementById("needs-script");
    if (place) place.textContent = error instanceof Error ? error.message : String(error);
    place?.removeAttribute("hidden");
    document.getElementById("app")?.setAttribute("hidden", "");
    if (!(error instanceof SiteError)) throw error;
  }
}

function startKeys() {
  let goneAt = -Infinity;
  /** @type {string | null} what is typed after / before the search is there */
  let ahead = null;
  const search = async () => {
    ahead = "";
    try {
      const { openSearch } = await import("./search/search.js");
      openSearch(ahead);
    } finally {
      ahead = null;
    }
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    if (ahead !== null) {
      if (event.key === "Backspace") ahead = ahead.slice(0, -1);
      else if (event.key.length === 1) ahead += event.key;
      else return;
      event.preventDefault();
      return;
    }
    const going = event.timeStamp - goneAt < G_WAITS_MS;
    goneAt = -Infinity;
    const place = PLACES[/** @type {keyof typeof PLACES} */ (event.key)];
    if (going && place) location.href = root() + place[0];
    else if (event.key === "g") goneAt = event.timeStamp;
    else if (event.key === "/") void search();
    else if (event.key === "?") void import("./help.js").then(({ openHelp }) => openHelp(PLACES));
    else if (event.key === "j" || event.key === "k") walk(event.key === "j" ? 1 : -1);
    else return;
    event.preventDefault();
  });
  return search;
}

/** @param {EventTarget | null} target */
function isTyping(target) {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "button"].includes(target.type);
  return target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/**
 * Go to the next incident of this page, or the one before; after the last comes the first.
 *
 * @param {1 | -1} step
 */
function walk(step) {
  const all = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("[data-incident]")]);
  if (!all.length) return;
  const now = all.findIndex((one) => one.contains(document.activeElement));
  const next = all[now < 0 ? (step > 0 ? 0 : all.length - 1) : (now + step + all.length) % all.length];
  if (!next) return;
  if (!next.hasAttribute("tabindex")) next.tabIndex = -1;
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

/** A button at each text that is there to be copied. */
function offerCopies() {
  for (const text of document.querySelectorAll("pre[data-copy], .steps code")) {
    text.before(copyButton("Copy", () => text.textContent ?? ""));
  }
}

/** Long tables sort and filter; the module is loaded once the page is idle. */
async function improveTables() {
  const tables = /** @type {HTMLTableElement[]} */ ([...document.querySelectorAll("main table.rows")]);
  if (!tables.length) return;
  const { makeFilterable, makeSortable } = await import("./tables.js");
  for (const table of tables) {
    if (table.rows.length < FEWEST_TO_SORT) continue;
    makeSortable(table);
    makeFilterable(table);
  }
}

/** A field in the header that says that there is a search, and opens it. @param {() => Promise<void>} search */
function offerSearch(search) {
  const nav = document.querySelector("header.top nav");
  nav?.after(
    el("button", { type: "button", class: "search-field", onclick: () => void search() }, "Search ", el("kbd", {}, "/")),
  );
}

offerSearch(startKeys());
offerCopies();
if (document.querySelector("[data-live]")) void import("./live.js").then(({ startLive }) => startLive());
if (document.querySelector("[data-filter]")) void import("./alerts.js").then(({ startFilters }) => startFilters());
if (document.querySelector("a[data-perfetto]")) void import("./perfetto.js").then(({ offerPerfetto }) => offerPerfetto());
if ("requestIdleCallback" in globalThis) requestIdleCallback(() => void improveTables());
else void improveTables();
void startPage();
