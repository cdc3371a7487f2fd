// @ts-check
/*
 * A classic script, the first thing that a page asks for: it sets the colours before anything is drawn, so that no page
 * flashes in the wrong ones, and asks at once for the data that the page will need, where a browser lets it.
 */
(function () {
  "use strict";
  /** Pages that need the catalogue, and uPlot. */
  const WITH_DATA = ["explore", "compare", "receipt"];
  const WITH_PLOT = ["explore", "receipt"];
  const MOST_AHEAD = 6;
  const SERIES_ID = /^[0-9a-f]{16}(~[A-Za-z0-9_-]{1,32})?$/;
  const own = document.currentScript;
  const root = (own && own.dataset.root) || "";
  const page = (own && own.dataset.page) || "";

  /**
   * Answers that were asked for before there was a module to read them; data.js takes them.
   *
   * @type {Map<string, Promise<Response>>}
   */
  const answers = ((/** @type {any} */ (globalThis)).tvmdashAnswers = new Map());

  /** @param {string} path */
  function ask(path) {
    const answer = fetch(root + path);
    answer.catch(() => null); // whoever takes it hears of a fault
    answers.set(path, answer);
  }

  /** uPlot runs as soon as it is there; where it does not come, plot.js asks again. */
  function plotAhead() {
    const script = document.createElement("script");
    script.src = root + "vendor/uplot/uPlot.iife.min.js";
    script.id = "uplot";
    script.addEventListener("error", () => script.remove());
    document.head.append(script);
  }

  /** The series that the explorer will show: those of the address, or the one that the publisher named. */
  function seriesAhead() {
    const asked = /[#&]series=([^&]*)/.exec(location.hash);
    const ids = asked ? (asked[1] || "").split(",") : [(own && own.dataset.series) || ""];
    return ids.filter((id) => SERIES_ID.test(id)).slice(0, MOST_AHEAD);
  }

  if (WITH_PLOT.includes(page)) plotAhead();
  if (location.protocol !== "file:") {
    if (WITH_DATA.includes(page)) ask("index.json");
    if (page === "explore") for (const id of seriesAhead()) ask("series/" + id + ".json");
  }

  const KEY = "tvmdash-theme";
  const WORDS = { auto: "Colours: auto", light: "Colours: light", dark: "Colours: dark" };

  /** @returns {"auto" | "light" | "dark"} */
  function chosen() {
    try {
      const kept = localStorage.getItem(KEY);
      return kept === "light" || kept === "dark" ? kept : "auto";
    } catch {
      return "auto"; // storage is refused: the choice lasts as long as the page
    }
  }

  /** @param {"auto" | "light" | "dark"} theme */
  function apply(theme) {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    document.dispatchEvent(new CustomEvent("themechange"));
  }

  /** @param {"auto" | "light" | "dark"} theme */
  function keep(theme) {
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // storage is refused: the choice lasts as long as the page
    }
  }

  let theme = chosen();
  apply(theme);

  document.addEventListener("DOMContentLoaded", function () {
    const header = document.querySelector("header.top");
    if (!header) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "theme-toggle";
    button.textContent = WORDS[theme];
    button.addEventListener("click", function () {
      theme = theme === "auto" ? "light" : theme === "light" ? "dark" : "auto";
      button.textContent = WORDS[theme];
      keep(theme);
      apply(theme);
    });
    header.append(button); // not to the links, which scroll on a phone: nobody finds a button behind them
  });

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () {
    document.dispatchEvent(new CustomEvent("themechange"));
  });
  addEventListener("storage", function (event) {
    if (event.key !== KEY) return;
    theme = chosen();
    apply(theme);
    const button = document.querySelector(".theme-toggle");
    if (button) button.textContent = WORDS[theme];
  });
})();
