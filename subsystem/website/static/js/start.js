// @ts-check
/*
 * A classic script, the first thing that a page asks for: it sets the colours before anything is drawn, so that no page
 * flashes in the wrong ones, asks at once for all that the page's modules will need, and starts them where the browser
 * lets a page have them, which from file:// it does not.
 */
(function () {
  "use strict";
  /**
   * The modules that each page imports, so that they are fetched at once and not one after the other.
   *
   * @type {Record<string, string>}
   */
  const SOON = {
    explore: "explore chart chart_options chart_paint data dom explore_view format plot points state",
    compare: "compare compare_rows compare_tables data dom explore_view format picker points ratios state",
    receipt:
      "receipt receipt_parts facts icicle samples tree chart_card data dom explore_view format plot points state",
  };
  /**
   * Those that it imports once the first chart is there.
   *
   * @type {Record<string, string>}
   */
  const LATER = {
    explore: "explore_around chart_card explore_legend explore_picker overview picker",
  };
  const MOST_AHEAD = 6;
  const SERIES_ID = /^[0-9a-f]{16}(~[A-Za-z0-9_-]{1,32})?$/;
  const own = document.currentScript;
  const root = (own && own.dataset.root) || "";
  const page = (own && own.dataset.page) || "";

  /**
   * @param {string} path
   * @param {Record<string, string>} attributes
   */
  function ahead(path, attributes) {
    const link = document.createElement("link");
    for (const [name, value] of Object.entries(attributes)) link.setAttribute(name, value);
    link.href = root + path;
    document.head.append(link);
  }

  /** The series that the explorer will show: those of the address, or the one that the publisher named. */
  function seriesAhead() {
    const asked = /[#&]series=([^&]*)/.exec(location.hash);
    const ids = asked ? (asked[1] || "").split(",") : [(own && own.dataset.series) || ""];
    return ids.filter((id) => SERIES_ID.test(id)).slice(0, MOST_AHEAD);
  }

  if (location.protocol !== "file:") {
    const DATA = { rel: "preload", as: "fetch", crossorigin: "anonymous" };
    const MODULE = { rel: "modulepreload" };
    const names = (/** @type {string | undefined} */ list) => (list || "").split(" ").filter(Boolean);
    ahead("js/app.js", MODULE);
    if (names(SOON[page]).includes("plot"))
      ahead("vendor/uplot/uPlot.iife.min.js", { rel: "preload", as: "script", fetchpriority: "high" });
    if (SOON[page]) ahead("index.json", DATA);
    if (page === "explore") for (const id of seriesAhead()) ahead("series/" + id + ".json", DATA);
    for (const name of names(SOON[page] || "data dom")) ahead("js/" + name + ".js", MODULE);
    for (const name of names(LATER[page])) ahead("js/" + name + ".js", { ...MODULE, fetchpriority: "low" });
    // The style sheets are there then: age.js is deferred, so it waits for them, and this event for it.
    document.addEventListener("DOMContentLoaded", function () {
      const app = document.createElement("script");
      app.type = "module";
      app.src = root + "js/app.js";
      document.head.append(app);
    });
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
    const nav = document.querySelector("header.top nav, header nav");
    if (!nav) return;
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
    nav.append(button);
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
