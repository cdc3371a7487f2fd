// @ts-check
/** Where a card stands beside its point without hiding the line that it describes. Nothing here touches the page. */

/** @typedef {{x: number, y: number}} Spot in pixels */
/** @typedef {{left: number, top: number, width: number, height: number}} Box in pixels */

const GAP_PX = 16;
const ABOVE_PX = 40;
const MOST_SAMPLES = 4000;

/**
 * The place of a card of this size in `room`, beside or away from `spot`, that hides least of the line through `path`;
 * of such places the one nearest to the spot. `hidden` is how many samples of the line are below it.
 *
 * @param {{width: number, height: number}} size
 * @param {Box} room
 * @param {Spot} spot
 * @param {readonly Spot[]} path
 * @returns {{left: number, top: number, hidden: number} | null} null where it finds no room beside its point
 */
export function placeCard(size, room, spot, path) {
  const [right, foot] = [room.left + room.width - size.width, room.top + room.height - size.height];
  const lefts = [spot.x + GAP_PX, spot.x - GAP_PX - size.width, room.left, right];
  const tops = [Math.min(Math.max(room.top, spot.y - ABOVE_PX), foot), room.top, foot];
  const line = samplesOf(path);
  /** @type {{left: number, top: number, hidden: number} | null} */
  let best = null;
  let least = Infinity;
  for (const left of lefts) {
    for (const top of tops) {
      const box = { left, top, ...size };
      if (left < room.left || left > right || top < room.top || holds(box, spot, GAP_PX / 2)) continue;
      const hidden = line.filter((one) => holds(box, one, 0)).length;
      const away = Math.hypot(left + size.width / 2 - spot.x, top + size.height / 2 - spot.y);
      const cost = hidden * 1e6 + away;
      if (cost < least) [least, best] = [cost, { left, top, hidden }];
    }
  }
  return best;
}

/** @param {Box} box @param {Spot} spot @param {number} around */
function holds(box, spot, around) {
  return (
    spot.x > box.left - around &&
    spot.x < box.left + box.width + around &&
    spot.y > box.top - around &&
    spot.y < box.top + box.height + around
  );
}

/** Points along a line, so that a step between two nights is not overlooked. @param {readonly Spot[]} path */
function samplesOf(path) {
  const parts = Math.max(1, Math.min(8, Math.floor(MOST_SAMPLES / path.length)));
  return path.flatMap((spot, at) => {
    const next = path[at + 1] ?? spot;
    return Array.from({ length: parts }, (_one, part) => ({
      x: spot.x + ((next.x - spot.x) * part) / parts,
      y: spot.y + ((next.y - spot.y) * part) / parts,
    }));
  });
}
