// @ts-check
/** An icicle graph as SVG: the whole above its parts, each as wide as its time. A click makes a box the whole. */

import { el, svg } from "../dom.js";
import { counted, quantity } from "../format.js";
import { boxes, depthOf } from "./tree.js";

/** @typedef {import("./tree.js").Node} Node */

const WIDTH = 1000;
const ROW = 26;
const LEAST = 0.001;
const CHAR = 6.4;
const COLORS = 10;

/**
 * @param {Node} whole
 * @param {string} label for who cannot see it; its table stands below
 */
export function icicle(whole, label) {
  const host = el("div", { class: "icicle" });
  const said = el("p", { class: "icicle-said", role: "status" });
  const show = (/** @type {Node} */ top) => {
    const scale = Math.max(1, host.clientWidth || WIDTH);
    const graph = svg("svg", {
      viewBox: `0 0 ${scale} ${ROW * depthOf(top)}`,
      height: ROW * depthOf(top),
      role: "group",
      "aria-label": label,
    });
    const tell = (/** @type {Node} */ node) => {
      const share = whole.ns > 0 ? ` (${((100 * node.ns) / whole.ns).toFixed(1)} %)` : "";
      said.textContent = `${node.name}: ${quantity(node.ns, "ns")}${share}${node.calls ? `, ${counted(node.calls, "call")}` : ""}`;
    };
    for (const { node, depth, left, width, group } of boxes(top, LEAST)) {
      const opens = node.children.length > 0 && node !== top;
      const closes = node === top && top !== whole;
      const act = () => show(closes ? whole : node);
      const fits = Math.floor((width * scale - 8) / CHAR);
      const name = node.name.length <= fits ? node.name : fits > 3 ? `${node.name.slice(0, fits - 1)}…` : "";
      const interactive = opens || closes;
      graph.append(
        svg(
          "g",
          {
            class: `box ${depth === 0 ? "whole" : `color-${group % COLORS}`}`,
            onpointerenter: () => tell(node),
            onfocus: () => tell(node),
            ...(interactive
              ? {
                  tabindex: 0,
                  role: "button",
                  "aria-label": `${node.name}, ${quantity(node.ns, "ns")}`,
                  onclick: act,
                  onkeydown: (event) => {
                    if (event.key === "Enter" || event.key === " ") {
                      event.preventDefault();
                      act();
                    }
                  },
                }
              : {}),
          },
          svg("rect", {
            x: left * scale,
            y: depth * ROW,
            width: Math.max(0.5, width * scale - 1),
            height: ROW - 2,
            rx: 2,
          }),
          name ? svg("text", { x: left * scale + 5, y: depth * ROW + 16 }, name) : null,
        ),
      );
    }
    host.replaceChildren(graph);
    tell(top);
  };
  show(whole);
  let width = 0;
  new ResizeObserver(() => {
    if (Math.abs(host.clientWidth - width) < 2) return;
    width = host.clientWidth;
    show(whole);
  }).observe(host);
  return el("div", {}, host, said);
}
