// @ts-check
/** Many things in one tab stop: Tab leads to them, arrow keys, Home and End go among them. */

/** @type {Record<string, (at: number, count: number) => number>} */
const STEPS = {
  ArrowDown: (at, count) => (at + 1) % count,
  ArrowRight: (at, count) => (at + 1) % count,
  ArrowUp: (at, count) => (at + count - 1) % count,
  ArrowLeft: (at, count) => (at + count - 1) % count,
  Home: () => 0,
  End: (_at, count) => count - 1,
};

/**
 * From now on what matches `selector` in `host`, also what comes later, is one tab stop.
 *
 * @param {HTMLElement} host
 * @param {string} selector
 */
export function rove(host, selector) {
  const all = () => /** @type {HTMLElement[]} */ ([...host.querySelectorAll(selector)]);
  const seen = () => all().filter((item) => item.checkVisibility());
  /** @param {HTMLElement | undefined} chosen */
  const stopAt = (chosen) => {
    for (const item of all()) if (item.tabIndex !== (item === chosen ? 0 : -1)) item.tabIndex = item === chosen ? 0 : -1;
  };
  const refresh = () => {
    const visible = seen();
    const items = visible.length ? visible : all(); // what is folded up is to be reached once it is unfolded
    stopAt(items.find((item) => item === document.activeElement) ?? items.find((item) => item.tabIndex === 0) ?? items[0]);
  };
  host.addEventListener("focusin", ({ target }) => {
    if (target instanceof HTMLElement && target.matches(selector)) stopAt(target);
  });
  host.addEventListener("keydown", (event) => {
    const items = seen();
    const at = items.findIndex((item) => item === document.activeElement);
    const step = STEPS[event.key];
    if (at < 0 || !step || event.ctrlKey || event.metaKey || event.altKey) return;
    items[step(at, items.length)]?.focus();
    event.preventDefault();
  });
  host.addEventListener("toggle", refresh, { capture: true });
  new MutationObserver(refresh).observe(host, { childList: true, subtree: true });
  refresh();
}
