// @ts-check
/** What every page gets where modules run: search, keys; and the page's own part. */

import { readCatalogue, SiteError } from "./data.js";
import { startKeys } from "./keys.js";

/** @type {Record<string, () => Promise<{start: () => Promise<void>}>>} */
const PAGES = {
  explore: () => import("./explore.js"),
  compare: () => import("./compare.js"),
  receipt: () => import("./receipt.js"),
};

async function startPage() {
  const load = PAGES[document.body.dataset["page"] ?? ""];
  if (!load) return;
  try {
    void readCatalogue().catch(() => null); // begun before the modules are there; whoever needs it hears of a fault
    const page = await load();
    document.getElementById("needs-server")?.setAttribute("hidden", "");
    document.getElementById("app")?.removeAttribute("hidden");
    await page.start();
  } catch (error) {
    const place = document.getElementById("needs-server");
    if (place) place.textContent = error instanceof Error ? error.message : String(error);
    place?.removeAttribute("hidden");
    document.getElementById("app")?.setAttribute("hidden", "");
    if (!(error instanceof SiteError)) throw error;
  }
}

startKeys({ loadSearch: () => import("./search.js") });
void startPage();
