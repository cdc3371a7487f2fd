// @ts-check
/** What a page shows is in the address after #, so that copying the link copies the view. */

/** @typedef {Record<string, string>} State */

/**
 * The state in `hash`; what cannot be decoded is left out.
 *
 * @param {string} hash with or without the #
 * @returns {State}
 */
export function parseState(hash) {
  /** @type {State} */
  const state = {};
  for (const part of hash.replace(/^#/, "").split("&")) {
    const at = part.indexOf("=");
    if (at <= 0) continue;
    try {
      state[decodeURIComponent(part.slice(0, at))] = decodeURIComponent(part.slice(at + 1).replace(/\+/g, " "));
    } catch (error) {
      if (!(error instanceof URIError)) throw error;
    }
  }
  return state;
}

/**
 * The hash of `state`, "" where it holds nothing. Commas, colons and @ stay legible.
 *
 * @param {State} state
 */
export function formatState(state) {
  const legible = (/** @type {string} */ text) =>
    encodeURIComponent(text).replace(/%2C/g, ",").replace(/%3A/g, ":").replace(/%40/g, "@");
  const parts = Object.entries(state).filter(([, value]) => value !== "");
  return parts.length ? `#${parts.map(([key, value]) => `${legible(key)}=${legible(value)}`).join("&")}` : "";
}

/**
 * The list in a value: parts between commas, each once, no empty ones.
 *
 * @param {string | undefined} value
 */
export function parts(value) {
  return [...new Set((value ?? "").split(",").filter(Boolean))];
}

/** @returns {State} */
export function currentState() {
  return parseState(location.hash);
}

/**
 * Change some parts of the state; "" takes one out. A new entry of the history, unless `replace`.
 *
 * @param {State} patch
 * @param {{replace?: boolean}} [how]
 */
export function changeState(patch, { replace = false } = {}) {
  const hash = formatState({ ...currentState(), ...patch });
  if (hash === location.hash) return;
  const url = hash || location.pathname + location.search;
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  dispatchEvent(new CustomEvent("statechange"));
}

/**
 * Call `show` with the state now and whenever it changes: by changeState, back, forward, or a new address.
 *
 * @param {(state: State) => void} show
 */
export function onState(show) {
  let shown = location.hash;
  const again = () => {
    if (location.hash === shown) return;
    shown = location.hash;
    show(currentState());
  };
  for (const event of ["statechange", "popstate", "hashchange"]) addEventListener(event, again);
  show(currentState());
}
