// @ts-check
/**
 * What a running night does: a line on the first page, all of it on a page of its own. A script is asked for, not data, as
 * a page from disk reads no data; the night writes it, and a publish carries it over.
 */

import { root } from "./data.js";
import { el } from "./dom.js";
import { counted, moment, seconds } from "./format.js";

/**
 * @typedef {{state: "none" | "running" | "ended" | "interrupted", night: string, at: string,
 *   usual_night_s: number | null, running?: [string, string][], done?: number, total?: number,
 *   usual_s?: Record<string, number>, points?: Record<string, [number, number]>}} Live
 */
const FILE = "live.js";
const EVERY_MS = 10e3;
/** Ten times as long as a night that lives is ever silent. */
const SILENT_S = 300;

/** Show it now, and again and again while somebody looks. */
export function startLive() {
  const place = /** @type {HTMLElement} */ (document.querySelector("[data-live]"));
  const isWhole = place.dataset["live"] === "whole";
  const next = async () => {
    if (document.visibilityState === "visible") {
      const live = await ask();
      place.replaceChildren(...(isWhole ? drawPage(live) : drawLine(live)));
      place.hidden = !place.childNodes.length;
    }
    setTimeout(() => void next(), EVERY_MS);
  };
  void next();
}

/** @returns {Promise<Live | null>} what the night wrote last; null where it cannot be had */
function ask() {
  const files = ((/** @type {any} */ (globalThis)).tvmdashFiles ??= {});
  delete files["live.json"];
  return new Promise((resolve) => {
    const script = el("script", { src: `${root()}${FILE}?${Date.now()}` });
    const end = () => {
      script.remove();
      resolve(files["live.json"] ?? null);
    };
    script.addEventListener("load", end);
    script.addEventListener("error", end);
    document.head.append(script);
  });
}

/** Seconds since the night was heard of, by the reader's clock. @param {Live} live */
const silence = (live) => Date.now() / 1e3 - seconds(live.at);

/** @param {Live | null} live */
function drawLine(live) {
  if (live?.state !== "running" || silence(live) > SILENT_S) return [];
  const doing = (live.running ?? []).map(([name]) => `${name}${points(live, name)}`).join("; ");
  const words = [doing, `${live.done} of ${live.total} steps done`, left(live)].filter(Boolean).join("; ");
  const link = el("a", { href: "live.html" }, `A night has been running since ${moment(live.night)}`);
  return [el("span", { class: "icon", "aria-hidden": "true" }, "◷"), link, el("bdi", {}, `: ${words}.`)];
}

/** @param {Live | null} live */
function drawPage(live) {
  if (!live) return [el("p", { class: "trouble" }, `${FILE} could not be loaded. Is the server still running?`)];
  if (live.state === "none") return [el("p", { class: "none" }, "No night has run since this site was made.")];
  const night = `The night of ${moment(live.night)}`;
  if (live.state === "ended") return [el("p", { class: "headline" }, `${night} ended at ${moment(live.at)}.`)];
  if (live.state === "interrupted")
    return [el("p", { class: "trouble" }, `${night} was interrupted at ${moment(live.at)}. The next one saves what it measured.`)];
  const isSilent = silence(live) > SILENT_S;
  const reason = "It was killed, or this site is a copy that it does not write to";
  const headline = isSilent
    ? el("p", { class: "trouble" }, `${night} has not been heard of for ${span(silence(live))}. ${reason}; its last word:`)
    : el("p", { class: "headline" }, `${night} is running.`);
  const facts = [
    ["Started", `${moment(live.night)}, ${span(elapsed(live.night, live))} ${isSilent ? "before its last word" : "ago"}`],
    ["Steps", `${live.done} of ${live.total} done`],
    ["Time", isSilent ? "" : left(live)],
  ].filter(([, words]) => words);
  const list = facts.map(([name, words]) => el("div", {}, el("dt", {}, name), el("dd", {}, words)));
  const rows = (live.running ?? []).map(([name, since]) => drawStep(live, name, since));
  const steps = rows.length ? el("ul", { class: "plain live" }, ...rows) : el("p", { class: "none" }, "It is between two steps.");
  return [headline, el("dl", { class: "pairs" }, ...list), steps];
}

/** @param {Live} live @param {string} name @param {string} since */
function drawStep(live, name, since) {
  const usualS = live.usual_s?.[name];
  const [measured, all] = live.points?.[name] ?? [0, 0];
  const took = ` for ${span(elapsed(since, live))}${usualS ? `, usually ${span(usualS)}` : ""}`;
  const bar = all ? el("progress", { max: all, value: measured, "aria-label": `Points of ${name}` }) : null;
  return el("li", {}, el("bdi", {}, name), points(live, name), el("span", { class: "quiet" }, took), bar);
}

/** @param {Live} live @param {string} name */
function points(live, name) {
  const [measured, all] = live.points?.[name] ?? [0, 0];
  return all ? `, ${measured} of ${counted(all, "point")} measured` : "";
}

/** Seconds since a moment: until now, or until the night was heard of last. @param {string} stamp @param {Live} live */
function elapsed(stamp, live) {
  return (silence(live) > SILENT_S ? seconds(live.at) : Date.now() / 1e3) - seconds(stamp);
}

/** How much longer, by what the last nights took. @param {Live} live */
function left(live) {
  const usualS = live.usual_night_s;
  if (!usualS) return "how long it will take is not known";
  const leftS = usualS - elapsed(live.night, live);
  return leftS > 0 ? `about ${span(leftS)} left` : `usually over after ${span(usualS)}`;
}

/** @param {number} length in seconds */
function span(length) {
  const whole = Math.max(0, Math.round(length));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.round(whole / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
