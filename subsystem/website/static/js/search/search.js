// @ts-check
/** The search that / opens: a list under a field, walked with the arrow keys. */

import { readCatalogue, root, SiteError } from "../data.js";
import { el } from "../dom.js";
import { findable, search } from "./index.js";

/** @typedef {import("./index.js").Found} Found */

/** @param {string} text what was typed already */
export function openSearch(text) {
  /** @type {Found[]} */
  let items = [];
  /** @type {Found[]} */
  let found = [];
  let chosen = 0;
  const list = el("ul", { id: "found", role: "listbox", "aria-label": "Found" });
  const said = el("p", { role: "status", class: "quiet" }, "Reading the catalogue …");
  const field = el("input", {
    type: "text",
    role: "combobox",
    "aria-expanded": "true",
    "aria-controls": "found",
    "aria-label": "Search series, incidents, commits, nights",
    placeholder: "Series, incident, commit, date",
    autocomplete: "off",
    spellcheck: "false",
  });
  field.value = text;
  const dialog = el("dialog", { class: "search", "aria-label": "Search" }, field, list, said);

  const choose = (/** @type {number} */ place) => {
    chosen = found.length ? (place + found.length) % found.length : 0;
    [...list.children].forEach((option, at) => option.setAttribute("aria-selected", String(at === chosen)));
    if (found.length) field.setAttribute("aria-activedescendant", `found-${chosen}`);
    else field.removeAttribute("aria-activedescendant");
    list.children[chosen]?.scrollIntoView({ block: "nearest" });
  };
  const show = () => {
    const result = search(items, field.value);
    found = result.found;
    list.replaceChildren(
      ...found.map((item, at) =>
        el(
          "li",
          { role: "option", id: `found-${at}`, onclick: () => go(item) },
          el("span", { class: "found-kind" }, item.kind),
          el("bdi", { class: "found-words" }, item.words),
        ),
      ),
    );
    const more = result.count - found.length;
    said.textContent = !field.value.trim()
      ? ""
      : !found.length
        ? "Nothing found."
        : more > 0
          ? `${more} more.`
          : `${found.length} found.`;
    choose(0);
  };
  const go = (/** @type {Found} */ item) => {
    dialog.close();
    location.href = root() + item.url;
  };

  field.addEventListener("input", show);
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen - 1);
    else if (event.key === "Enter") found.slice(chosen, chosen + 1).forEach(go);
    else return;
    event.preventDefault();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  field.focus();
  readCatalogue().then(
    (catalogue) => {
      items = findable(catalogue);
      show();
    },
    (error) => {
      said.textContent = error instanceof SiteError ? error.message : String(error);
    },
  );
}
