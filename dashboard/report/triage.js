// @ts-check
// Lets people settle incidents in the page. `serve --triage` adds it to pages with incidents.

const base = new URL(".", import.meta.url);

/** @typedef {{state: string, owner: string, issue: string, bisect: boolean, history: {at: string, who: string, words: string}[]}} Shown */

/** @param {string} tag @param {Record<string, string>} attributes @param {...(Node | string)} children */
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** @type {[string, string][]} */
const ACTS = [
  ["ack", "Acknowledge"],
  ["note", "Comment, assign or link"],
  ["expect", "Expected: the new level stays"],
  ["fixed", "Fixed"],
  ["false_alarm", "False alarm"],
  ["silence", "Silence"],
  ["join", "Join to another incident"],
  ["split", "Split off"],
  ["bisect", "Start a bisection"],
];
const FIELDS = {
  owner: "Assigned to", issue: "Address of the issue", days: "Days", into: "ID of the other incident",
  series: "Series, with * and ? (of a joined incident: leave empty)",
};
/** @type {Record<string, (keyof typeof FIELDS)[]>} */
const ASKED = { note: ["owner", "issue"], silence: ["days"], join: ["into"], split: ["series"] };

const looks = new CSSStyleSheet();
looks.replaceSync(`
  .triage { display: flex; flex-wrap: wrap; gap: .6rem 1rem; align-items: end; margin-block: 1rem; }
  .triage label { display: grid; gap: .2rem; font-size: .875rem; flex: 1 1 10rem; max-width: 24rem; }
  .triage span { display: contents; }
  .triage :is(input, select, button) {
    font: inherit; color: inherit; background: transparent; padding: .35rem .6rem; min-height: 2.25rem;
    border: 1px solid; border-radius: 6px;
  }
  .triage option { color: CanvasText; background: Canvas; }
  .triage button { font-weight: 600; cursor: pointer; }
  .triage :is(p, div) { flex-basis: 100%; margin: 0; }
`);
document.adoptedStyleSheets.push(looks);

/** @param {Element} place @param {Shown} shown */
function show(place, shown) {
  const tag = place.querySelector(".tag") ?? place.querySelector(".settled");
  if (tag) tag.textContent = shown.state;
  place.querySelector(".triage-now")?.remove();
  const lines = shown.history.map((each) => make("li", {}, `${each.at.slice(0, 10)} ${each.who}: ${each.words}`));
  const who = shown.owner ? [make("p", {}, `Assigned to ${shown.owner}.`)] : [];
  const now = make("div", { class: "triage-now" }, ...who, make("ul", { class: "history" }, ...lines));
  (place.querySelector(".triage") ?? place).append(now);
}

/** @param {Element} place @param {string} incident @param {Shown} shown @param {{token: string, who: string}} session */
function addForm(place, incident, shown, session) {
  const acts = ACTS.filter(([act]) => act !== "bisect" || shown.bisect);
  const choice = /** @type {HTMLSelectElement} */ (
    make("select", { name: "act" }, ...acts.map(([value, words]) => make("option", { value }, words)))
  );
  const more = make("span", {});
  const fill = () =>
    more.replaceChildren(
      ...(ASKED[choice.value] ?? []).map((name) =>
        make("label", {}, FIELDS[name], make("input", { name, ...(name === "days" ? { value: "14" } : {}) })),
      ),
    );
  choice.addEventListener("change", fill);
  const name = session.who || localStorage.getItem("triage-who") || "";
  const who = make("input", { name: "who", required: "", value: name, ...(session.who ? { readonly: "" } : {}) });
  const answer = make("p", { role: "status" });
  const form = /** @type {HTMLFormElement} */ (
    make(
      "form", { class: "triage", "aria-label": `Change incident ${incident}` },
      make("label", {}, "What", choice),
      more,
      make("label", {}, "Why", make("input", { name: "words", maxlength: "2000" })),
      make("label", {}, "Your name", who),
      make("button", { type: "submit" }, "Do it"),
      answer,
    )
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const typed = /** @type {Record<string, string>} */ (Object.fromEntries(new FormData(form)));
    const asked = { ...typed, incident };
    localStorage.setItem("triage-who", typed.who ?? "");
    try {
      const response = await fetch(new URL("act", base), {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Triage-Token": session.token },
        body: JSON.stringify(asked),
      });
      const said = await response.text();
      if (response.ok) show(place, (await load()).incidents[incident] ?? shown);
      answer.textContent = said; // last, so that who reads it sees the incident as it is by now
    } catch {
      answer.textContent = "The server could not be reached. Nothing was changed.";
    }
  });
  place.append(form);
}

/** @returns {Promise<{token: string, who: string, incidents: Record<string, Shown>}>} */
async function load() {
  return (await fetch(new URL("incidents.json", base))).json();
}

const known = await load();
for (const place of document.querySelectorAll("[data-incident]")) {
  const incident = place.getAttribute("data-incident") ?? "";
  const shown = known.incidents[incident];
  if (!shown) continue;
  addForm(place, incident, shown, known);
  show(place, shown);
}
