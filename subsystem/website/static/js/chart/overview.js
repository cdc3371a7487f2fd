// @ts-check
/** The strip below the chart: all nights there are, the ones in view selected; dragging in it selects others. */

import { el } from "../dom.js";
import { color, UPlot, utcDate } from "../plot.js";
import { timeLabels } from "../format.js";

const HEIGHT_PX = 64;

/**
 * @param {HTMLElement} host
 * @param {(range: import("./chart.js").Range) => void} onRange
 */
export function makeOverview(host, onRange) {
  /** @type {import("../plot.js").Plot | null} */
  let plot = null;
  /** @type {import("./chart.js").View | null} */
  let view = null;
  let quiet = false;
  const window = el("div", { class: "overview-window" });

  const place = () => {
    if (!plot || !view) return;
    const width = plot.over.clientWidth;
    const [left, right] = view.range.map((time) => Math.min(width, Math.max(0, plot?.valToPos(time, "x") ?? 0)));
    window.style.left = `${left}px`;
    window.style.width = `${Math.max(2, (right ?? 0) - (left ?? 0))}px`;
  };

  new ResizeObserver(() => {
    plot?.setSize({ width: Math.max(240, host.clientWidth), height: HEIGHT_PX });
    place();
  }).observe(host);
  document.addEventListener("themechange", () => plot?.redraw(false, true));

  return {
    /** @param {import("./chart.js").View} next */
    show(next) {
      host.hidden = next.xs.length < 2; // one night is no line
      if (host.hidden) return;
      const line = next.lines[0];
      const same = plot && view?.xs === next.xs && view.lines[0]?.values === line?.values;
      view = next;
      if (!same) {
        plot?.destroy();
        const data = /** @type {import("../plot.js").PlotData} */ ([next.xs, line?.values ?? []]);
        plot = new UPlot(
          {
            width: Math.max(240, host.clientWidth),
            height: HEIGHT_PX,
            padding: [4, 14, 0, 80],
            legend: { show: false },
            tzDate: utcDate,
            scales: { x: { time: !next.axis.drawn, range: () => next.axis.whole } },
            cursor: { x: false, y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
            axes: [
              next.axis.drawn?.(true) ?? {
                stroke: () => color("--muted"),
                grid: { show: false },
                ticks: { show: false },
                size: 22,
                space: 90,
                values: timeLabels,
              },
              { show: false },
            ],
            series: [{}, { stroke: () => color("--muted"), width: 1, points: { show: false } }],
            hooks: {
              draw: [place],
              setSelect: [
                (made) => {
                  const { left, width } = made.select;
                  if (quiet || width < 3) return;
                  quiet = true;
                  made.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
                  quiet = false;
                  onRange([made.posToVal(left, "x"), made.posToVal(left + width, "x")]);
                },
              ],
            },
          },
          data,
          host,
        );
        plot.over.append(window);
      }
      place();
    },
  };
}
