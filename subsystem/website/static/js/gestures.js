// @ts-check
/** Moving the time axis: shift or middle button drags it, the wheel with ctrl zooms, one finger drags, two zoom. */

/** @typedef {import("./plot.js").Plot} Plot */
/** @typedef {[number, number]} Range seconds since 1970 */

/**
 * @param {Plot} plot
 * @param {(range: Range) => void} onRange called at the end of a movement
 */
export function addGestures(plot, onRange) {
  const { over } = plot;
  /** @type {Map<number, number>} */
  const fingers = new Map();
  /** @type {{range: Range, center: number, spread: number} | null} */
  let begun = null;
  let moved = false;

  const shown = () => /** @type {Range} */ ([plot.scales["x"]?.min ?? 0, plot.scales["x"]?.max ?? 1]);
  const middle = () => [...fingers.values()].reduce((sum, x) => sum + x, 0) / fingers.size;
  const spread = () => (fingers.size < 2 ? 0 : Math.max(...fingers.values()) - Math.min(...fingers.values()));
  const begin = () => {
    begun = fingers.size ? { range: shown(), center: middle(), spread: spread() } : null;
  };

  over.style.touchAction = "pan-y";
  over.addEventListener(
    "mousedown",
    (event) => {
      if (event.shiftKey || event.button === 1) event.stopImmediatePropagation();
    },
    { capture: true },
  );
  over.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch" && !event.shiftKey && event.button !== 1) return;
    if (event.pointerType !== "touch") event.preventDefault(); // a tap has to end as a click
    over.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, event.clientX);
    moved = false;
    begin();
  });
  over.addEventListener("pointermove", (event) => {
    if (!begun || !fingers.has(event.pointerId)) return;
    fingers.set(event.pointerId, event.clientX);
    const [from, to] = begun.range;
    const perPixel = (to - from) / Math.max(1, over.clientWidth);
    const scale = begun.spread > 20 ? begun.spread / Math.max(20, spread()) : 1;
    const held = from + (begun.center - over.getBoundingClientRect().left) * perPixel;
    const shift = (middle() - begun.center) * perPixel * scale;
    if (!moved && Math.abs(middle() - begun.center) < 4 && scale === 1) return;
    moved = true;
    plot.setScale("x", { min: held - (held - from) * scale - shift, max: held + (to - held) * scale - shift });
  });
  for (const end of /** @type {const} */ (["pointerup", "pointercancel"])) {
    over.addEventListener(end, (event) => {
      if (!fingers.delete(event.pointerId)) return;
      begin();
      if (moved && !fingers.size) onRange(shown());
    });
  }

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let settled;
  over.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
      event.preventDefault();
      const [from, to] = shown();
      const turn = event.deltaY || event.deltaX;
      if (event.shiftKey) {
        const shift = ((to - from) * Math.sign(turn)) / 10;
        plot.setScale("x", { min: from + shift, max: to + shift });
      } else {
        const held = plot.posToVal(event.clientX - over.getBoundingClientRect().left, "x");
        const scale = turn > 0 ? 1.25 : 0.8;
        plot.setScale("x", { min: held - (held - from) * scale, max: held + (to - held) * scale });
      }
      clearTimeout(settled);
      settled = setTimeout(() => onRange(shown()), 200);
    },
    { passive: false },
  );
}
