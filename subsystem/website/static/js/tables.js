// @ts-check
/**
 * Tables that sort by a click on a head and show the rows that hold what is typed. A cell with data-sort sorts by that;
 * rows stay within their tbody; rows with data-with stay behind the row before them.
 */

import { debounced, el } from "./dom.js";
import { counted } from "./format.js";

const FEWEST_TO_FILTER = 12;
const TYPING_MS = 80;

/**
 * @param {HTMLTableElement} table
 */
export function makeSortable(table) {
  const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
  heads.forEach((head, column) => {
    const text = (head.textContent ?? "").trim();
    if (!text || head.colSpan > 1 || head.querySelector("button, a") || head.dataset["plain"] !== undefined) return;
    const button = el("button", { type: "button", class: "sort" });
    button.append(...head.childNodes);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      sortBy(table, column, down);
    });
    head.append(button);
  });
}

/**
 * @param {HTMLTableElement} table
 * @param {number} column
 * @param {boolean} down
 */
function sortBy(table, column, down) {
  for (const body of table.tBodies) {
    const groups = groupsOf([...body.rows]);
    const keyed = groups.map((rows) => ({ rows, key: sortKey(rows[0]?.cells[column]) }));
    keyed.sort((x, y) => compareKeys(x.key, y.key, down));
    body.append(...keyed.flatMap(({ rows }) => rows));
  }
}

/** Each row with those that stay behind it. @param {HTMLTableRowElement[]} rows */
function groupsOf(rows) {
  /** @type {HTMLTableRowElement[][]} */
  const groups = [];
  for (const row of rows) {
    const last = groups[groups.length - 1];
    if (row.dataset["with"] !== undefined && last) last.push(row);
    else groups.push([row]);
  }
  return groups;
}

/**
 * What a cell sorts by; null where it is empty, which comes last either way.
 *
 * @param {HTMLTableCellElement | undefined} cell
 * @returns {number | string | null}
 */
export function sortKey(cell) {
  const inside = /** @type {HTMLElement | null | undefined} */ (cell?.querySelector("[data-sort]"));
  const text = (cell?.dataset["sort"] ?? inside?.dataset["sort"] ?? cell?.textContent ?? "").trim();
  if (!text || text === "\u2013") return null;
  const number = Number(text.replace("\u2212", "-").replace(/ %$/, ""));
  return Number.isNaN(number) ? text.toLowerCase() : number;
}

/**
 * @param {number | string | null} x
 * @param {number | string | null} y
 * @param {boolean} down
 */
export function compareKeys(x, y, down) {
  if (x === null || y === null) return Number(x === null) - Number(y === null);
  const order =
    typeof x === "number" && typeof y === "number"
      ? x - y
      : String(x).localeCompare(String(y), "en", { numeric: true, sensitivity: "base" });
  return down ? -order : order;
}

/**
 * A field before a long table that leaves only the rows with all its words.
 *
 * @param {HTMLTableElement} table
 */
export function makeFilterable(table) {
  const groups = [...table.tBodies].flatMap((body) => groupsOf([...body.rows]));
  if (groups.length < FEWEST_TO_FILTER) return;
  const name = (table.caption?.textContent ?? table.getAttribute("aria-label") ?? "").trim();
  const field = el("input", {
    type: "search",
    placeholder: "Filter",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": name ? `Filter: ${name}` : "Filter this table",
  });
  const said = el("span", { class: "quiet", role: "status" });
  field.addEventListener(
    "input",
    debounced(() => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      const fitting = groups.filter((rows) => hasAll(rows, words));
      for (const rows of groups) for (const row of rows) row.hidden = !fitting.includes(rows);
      for (const body of table.tBodies) body.hidden = [...body.rows].every((row) => row.hidden);
      said.textContent = words.length ? `${fitting.length} of ${counted(groups.length, "row")}` : "";
    }, TYPING_MS),
  );
  const place = table.closest(".scroll") ?? table;
  place.before(el("p", { class: "table-filter" }, field, said));
}

/** @param {readonly HTMLTableRowElement[]} rows @param {readonly string[]} words */
function hasAll(rows, words) {
  const text = rows.map((row) => row.textContent).join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}
