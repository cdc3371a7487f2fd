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
  const own = document.currentScript;
  const root = (own && own.dataset.root) || "";
  const page = (own && own.dataset.page) || "";

  /**
   * Answers that were asked for before there was a module to read them; data.js takes them.
   *
   * @type {Map<string, Promise<Response>>}
   */
  const answers = ((/** @type {any} */ (globalThis)).tvmdashAnswers = new Map());

  /** @param {string} path @param {string} [ending] of the file itself, where it is a script alone */
  function ask(path, ending) {
    const answer = fetch(root + (ending ? path.replace(/\.json$/, ending) : path));
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

  if (WITH_PLOT.includes(page)) plotAhead();
  if (location.protocol !== "file:") {
    if (WITH_DATA.includes(page)) ask("index.json");
    const shown = (own && own.dataset.series) || ""; // the file that holds what the explorer shows unasked
    if (page === "explore" && shown && !location.hash.includes("series=")) ask("series/" + shown + ".json", ".js");
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
