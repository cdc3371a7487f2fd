// @ts-check
/*
 * The header goes amber when the page is older than it should be. It is the reader's clock that says so: a publisher
 * that has died cannot look alive. A classic script, so that it works from file:// too.
 */
(function () {
  "use strict";
  const HOUR_MS = 3600e3;
  const CHECK_EVERY_MS = 5 * 60e3;

  /** @param {number} hours */
  function inWords(hours) {
    return hours < 48 ? Math.floor(hours) + " hours" : Math.floor(hours / 24) + " days";
  }

  function check() {
    const written = Date.parse(document.body.dataset.written || "");
    const maxAgeHours = Number(document.body.dataset.maxAgeHours);
    const header = document.querySelector("body > header");
    if (!header || !Number.isFinite(written) || !(maxAgeHours > 0)) return;
    const ageHours = (Date.now() - written) / HOUR_MS;
    const old = ageHours > maxAgeHours;
    header.classList.toggle("is-old", old);
    let notice = document.querySelector(".age-notice");
    if (!old) {
      if (notice) notice.remove();
      return;
    }
    if (!notice) {
      notice = document.createElement("p");
      notice.className = "age-notice";
      notice.setAttribute("role", "status");
      header.append(notice);
    }
    const words =
      "This page was written " +
      inWords(ageHours) +
      " ago, but should not be older than " +
      inWords(maxAgeHours) +
      ". Nights or their publishing may have stopped. Reload, or contact whoever runs this dashboard.";
    if (notice.textContent !== words) notice.textContent = words;
  }

  check();
  setInterval(check, CHECK_EVERY_MS);
})();
