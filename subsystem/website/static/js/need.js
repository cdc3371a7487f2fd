// @ts-check
/*
 * The end of the script of app.js: it runs that module, and each other when it is first needed. The scripts that a publish
 * makes of our modules only define them, as functions that give what they export. A classic script, so that pages work
 * from disk.
 */
(function () {
  "use strict";
  /** @type {Record<string, (need: (name: string) => Promise<any>) => Promise<any>>} */
  const modules = /** @type {any} */ (globalThis).tvmdashModules;
  /** @type {Map<string, Promise<any>>} */
  const begun = new Map();

  /** @param {string} name */
  function need(name) {
    const known = begun.get(name);
    if (known) return known;
    const module = modules[name];
    const running = module ? module(need) : load(name).then(() => modules[name]?.(need));
    begun.set(name, running);
    running.catch(() => begun.delete(name)); // whoever needs it hears of the fault, and may try again
    return running;
  }

  /** @param {string} name @returns {Promise<void>} */
  function load(name) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = `${document.body.dataset["root"] ?? ""}js/${name}`;
      script.addEventListener("load", () => resolve());
      script.addEventListener("error", () => {
        script.remove();
        reject(new Error(`js/${name} could not be loaded. Is the server still running?`));
      });
      document.head.append(script);
    });
  }

  void need("app.js");
})();
