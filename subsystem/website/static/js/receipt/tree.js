// @ts-check
/** Times as a tree, and where its boxes stand in an icicle graph. Nothing here touches the page. */

/** @typedef {{name: string, ns: number, calls: number, children: Node[]}} Node */
/** @typedef {{node: Node, depth: number, left: number, width: number, group: number}} Box left and width from 0 to 1 */

/** What TVM puts behind an operator's name to tell instances apart: fused_add_relu_12 is another fused_add_relu. */
const INSTANCE = /(?:_kernel)?(?:_?\d+)+$/;

/**
 * Operators below their kind below everything; a kind of one operator is that operator. The longest come first.
 *
 * @param {readonly (readonly [string, number, number])[]} operators name, calls, nanoseconds of all calls
 * @param {string} words the name of the whole
 * @returns {Node}
 */
export function operatorTree(operators, words) {
  /** @type {Map<string, Node[]>} */
  const kinds = new Map();
  for (const [name, calls, ns] of operators) {
    const kind = name.replace(INSTANCE, "") || name;
    kinds.set(kind, [...(kinds.get(kind) ?? []), { name, ns, calls, children: [] }]);
  }
  const children = [...kinds].flatMap(([kind, members]) => (members.length === 1 ? members : [parent(kind, members)]));
  return parent(words, children);
}

/**
 * @param {string} name
 * @param {Node[]} members
 * @returns {Node}
 */
function parent(name, members) {
  const children = [...members].sort((a, b) => b.ns - a.ns);
  return { name, children, ns: sum(children, (one) => one.ns), calls: sum(children, (one) => one.calls) };
}

/** @template T @param {T[]} items @param {(item: T) => number} what */
function sum(items, what) {
  return items.reduce((total, item) => total + what(item), 0);
}

/**
 * The boxes of the tree that are at least `least` of the whole wide; `group` is the place of the box of depth 1 above.
 *
 * @param {Node} top
 * @param {number} least
 * @returns {Box[]}
 */
export function boxes(top, least) {
  /** @type {Box[]} */
  const found = [];
  const add = (
    /** @type {Node} */ node,
    /** @type {number} */ depth,
    /** @type {number} */ left,
    /** @type {number} */ group,
  ) => {
    const width = top.ns > 0 ? node.ns / top.ns : 0;
    if (width < least && depth > 0) return;
    found.push({ node, depth, left, width, group });
    let at = left;
    node.children.forEach((child, place) => {
      add(child, depth + 1, at, depth === 0 ? place : group);
      at += top.ns > 0 ? child.ns / top.ns : 0;
    });
  };
  add(top, 0, 0, 0);
  return found;
}

/** @param {Node} node @returns {number} */
export function depthOf(node) {
  return 1 + Math.max(0, ...node.children.map((child) => depthOf(child)));
}
