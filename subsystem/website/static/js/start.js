// @ts-check
/*
 * A classic script in the head: it sets the colours before anything is drawn, so that no page flashes in the wrong
 * ones, and adds the modules where the browser lets a page have them, which from file:// it does not.
 */
(function () {
  "use strict";
  /**
   * What each page will import, so that it is fetched at once and not one after the other.
   *
   * @type {Record<string, string>}
   */
  const SOON = {
    explore:
      "explore chart chart_card chart_nearest chart_options chart_paint data dom explore_legend explore_picker " +
      "explore_view format gestures overview " +
      "palette picker plot points state ticks keys",
    compare: "compare compare_rows compare_tables data dom explore_view format picker points ratios state keys",
    receipt:
      "receipt receipt_parts facts icicle samples tree chart_card data dom explore_view format palette plot points " +
      "state ticks keys",
  };
  const own = document.currentScript;
  const root = (own && own.dataset.root) || "";
  const page = (own && own.dataset.page) || "";
  if (location.protocol !== "file:") {
    for (const name of (SOON[page] || "").split(" ").filter(Boolean)) {
      const link = document.createElement("link");
      link.rel = "modulepreload";
      link.href = root + "js/" + name + ".js";
      document.head.append(link);
    }
    if (SOON[page]) {
      const index = document.createElement("link");
      index.rel = "preload";
      index.as = "fetch";
      index.crossOrigin = "anonymous";
      index.href = root + "index.json";
      document.head.append(index);
    }
    const app = document.createElement("script");
    app.type = "module";
    app.src = root + "js/app.js";
    document.head.append(app);
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
