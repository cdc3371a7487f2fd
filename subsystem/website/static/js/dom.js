// @ts-check
/** Elements made from text. Nothing here or in the other modules parses HTML, so that any name stays text. */

/** @typedef {Node | string | number | null | undefined} Child */
/** @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} Attributes */

const SVG = "http://www.w3.org/2000/svg";
const SHOWN = new Set(["title", "aria-label", "placeholder"]);

/**
 * `text` without control characters and without the signs that turn the direction of what stands around them.
 *
 * @param {string} text
 */
export function clean(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

/**
 * @param {Element} node
 * @param {Attributes} attributes
 * @param {Child[]} children
 */
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name.replace(/^on/, ""), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      node.setAttribute(name, SHOWN.has(name) ? clean(String(value)) : String(value));
  }
  for (const child of children) {
    if (child !== null && child !== undefined) node.append(child instanceof Node ? child : clean(String(child)));
  }
}

/**
 * An element; attributes that are functions are listeners (`onclick`), false, null and undefined ones are left out.
 *
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  fill(node, attributes, children);
  return node;
}

/**
 * The same for SVG.
 *
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  fill(node, attributes, children);
  return /** @type {SVGElementTagNameMap[K]} */ (node);
}

/**
 * The element of this page with that id, which its template has.
 *
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} kind
 * @returns {T}
 */
export function byId(id, kind) {
  const node = document.getElementById(id);
  if (!(node instanceof kind)) throw new Error(`The page has no ${kind.name} #${id}.`);
  return node;
}

/**
 * A table; the first cell of each row is its header. Cells are nodes or text; `numeric` columns are aligned right.
 *
 * @param {string} caption
 * @param {string[]} heads
 * @param {Child[][]} rows
 * @param {Set<number>} [numeric]
 */
export function table(caption, heads, rows, numeric = new Set()) {
  /** @param {number} column */
  const kind = (column) => (numeric.has(column) ? "number" : null);
  return el(
    "table",
    { class: "data" },
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, ...heads.map((head, at) => el("th", { scope: "col", class: kind(at) }, head)))),
    el(
      "tbody",
      {},
      ...rows.map((row) =>
        el(
          "tr",
          {},
          ...row.map((cell, at) =>
            at === 0 ? el("th", { scope: "row", class: kind(at) }, cell) : el("td", { class: kind(at) }, cell),
          ),
        ),
      ),
    ),
  );
}

/**
 * A button that copies what `text` gives at the click, and says so.
 *
 * @param {string} words
 * @param {() => string} text
 */
export function copyButton(words, text) {
  const said = el("span", { role: "status", class: "copied" });
  const button = el(
    "button",
    {
      type: "button",
      onclick: async () => {
        said.textContent = (await copy(text())) ? " Copied." : " Your browser blocks copying.";
      },
    },
    words,
  );
  return el("span", { class: "copy" }, button, said);
}

/**
 * A button that saves what `text` gives at the click as a file.
 *
 * @param {string} words
 * @param {string} name
 * @param {string} type
 * @param {() => string | Promise<string>} text
 */
export function downloadButton(words, name, type, text) {
  const save = async () => saveFile(name, new Blob([await text()], { type }));
  return el("button", { type: "button", onclick: () => void save() }, words);
}

/** @param {string} name @param {Blob} content */
export function saveFile(name, content) {
  const url = URL.createObjectURL(content);
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/**
 * Whether `text` is in the clipboard now. Pages served by plain HTTP have no navigator.clipboard.
 *
 * @param {string} text
 */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = el("textarea", { class: "off-screen", "aria-hidden": "true", tabindex: -1 });
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

/**
 * `action` after `waitMs` without another call.
 *
 * @param {() => void} action
 * @param {number} waitMs
 */
export function debounced(action, waitMs) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, waitMs);
  };
}
