// What scripts add: single keys, focus that follows what changed, drafts that outlive a reload. Every page works without.
"use strict";

(() => {
  const keysAreOn = () => document.documentElement.dataset.keys !== "off";
  const places = { s: "/search", e: "/entries", r: "/review", d: "/due", p: "/replay", a: "/audit" };
  let isGoing = false;

  const isTyping = (element) =>
    element.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(element.tagName);

  const rows = () => [...document.querySelectorAll("[data-row]")].filter((row) => row.offsetParent !== null);

  function move(by) {
    const all = rows();
    if (!all.length) return;
    const at = all.findIndex((row) => row.classList.contains("at"));
    const next = all[Math.min(Math.max(at + by, 0), all.length - 1)];
    all.forEach((row) => row.classList.toggle("at", row === next));
    const target = next.querySelector("[data-open]") || next.querySelector("a, button, input, textarea");
    if (target) target.focus();
    next.scrollIntoView({ block: "nearest" });
  }

  async function showKeys() {
    let dialog = document.getElementById("keys-dialog");
    if (!dialog) {
      const answer = await fetch("/keys");
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const list = page.getElementById("key-list");
      if (!list) return window.location.assign("/keys");
      dialog = document.createElement("dialog");
      dialog.id = "keys-dialog";
      dialog.setAttribute("aria-label", "Keys");
      const article = document.createElement("article");
      const close = document.createElement("button");
      close.textContent = "Close";
      close.addEventListener("click", () => dialog.close());
      list.removeAttribute("id");
      article.append(document.adoptNode(list), close);
      dialog.append(article);
      document.body.append(dialog);
    }
    dialog.showModal();
    dialog.querySelector("button").focus();
  }

  function onKey(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!keysAreOn() || isTyping(event.target) || document.querySelector("dialog[open]")) return;
    const key = event.key;
    if (isGoing) {
      isGoing = false;
      if (places[key]) {
        event.preventDefault();
        window.location.assign(places[key]);
      }
      return;
    }
    const own = [...document.querySelectorAll("[data-key]")].find((element) => element.dataset.key === key);
    if (key === "?") showKeys();
    else if (key === "g") isGoing = true;
    else if (key === "/") {
      const box = document.querySelector("[data-search]");
      if (box) box.focus();
      else window.location.assign("/search");
    } else if (key === "j") move(1);
    else if (key === "k") move(-1);
    else if (key === "o") {
      const open = document.querySelector(".at [data-open]");
      if (!open) return;
      open.click();
    } else if (own) {
      const details = own.closest("details") || (own.tagName === "DETAILS" ? own : null);
      if (details) {
        details.open = true;
        const first = details.querySelector("textarea, input:not([type=hidden]), select, button");
        if (first) first.focus();
      } else own.click();
    } else return;
    event.preventDefault();
  }

  // -- drafts: what was typed into a form that was never sent comes back ----------------------------------------------

  const fieldsOf = (form) => [...form.querySelectorAll("textarea[name]:not([hidden]), input[type=text][name]")];

  function keepDrafts() {
    for (const form of document.querySelectorAll("form[data-draft]")) {
      const name = `draft ${form.dataset.draft}`;
      const fresh = !document.getElementById("error") && !document.getElementById("preview");
      const kept = fresh ? JSON.parse(sessionStorage.getItem(name) || "null") : null;
      if (kept) {
        for (const field of fieldsOf(form)) {
          if (field.name in kept && kept[field.name] !== field.defaultValue) field.value = kept[field.name];
        }
      }
      form.addEventListener("input", () => {
        const changed = fieldsOf(form).filter((field) => field.value !== field.defaultValue);
        sessionStorage.setItem(name, JSON.stringify(Object.fromEntries(changed.map((f) => [f.name, f.value]))));
      });
    }
    // Done: what was typed stands in the memory now.
    if (new URLSearchParams(window.location.search).has("done")) {
      for (const name of Object.keys(sessionStorage)) {
        if (name.startsWith("draft ") && name.startsWith(`draft ${window.location.pathname}`)) sessionStorage.removeItem(name);
      }
    }
  }

  // -- replay: the slider says where it stands, and plays event by event until it is stopped or at the end --------------

  function wireReplay() {
    const slider = document.querySelector("[data-slider]");
    const button = document.querySelector("[data-play]");
    if (!slider || !button) return;
    const shown = document.getElementById("position-shown");
    const answer = () => document.getElementById("answer");
    const pause = window.matchMedia("(prefers-reduced-motion: reduce)").matches ? 3000 : 1000;
    let waiting = null;
    let isPlaying = false;

    const say = () => { shown.textContent = slider.value; };

    function stop() {
      isPlaying = false;
      clearTimeout(waiting);
      button.textContent = "Play";
      answer().setAttribute("aria-live", "polite");
    }

    function go(position) {
      slider.value = position;
      say();
      slider.dispatchEvent(new Event("change", { bubbles: true }));
    }

    function step() {
      if (Number(slider.value) >= Number(slider.max)) stop();
      else go(Number(slider.value) + 1);
    }

    function play() {
      isPlaying = true;
      button.textContent = "Pause";
      // Read out it would be a stream that nobody can follow.
      answer().setAttribute("aria-live", "off");
      if (slider.value === slider.max) go(slider.min);
      else step();
    }

    button.hidden = false;
    button.addEventListener("click", () => (isPlaying ? stop() : play()));
    slider.addEventListener("input", () => {
      say();
      if (isPlaying) stop();
    });
    document.addEventListener("htmx:after:swap", () => {
      if (!isPlaying) return;
      answer().setAttribute("aria-live", "off");
      // After the answer, not beside it: however slow it is, each event is seen.
      clearTimeout(waiting);
      waiting = setTimeout(step, pause);
    });
    document.addEventListener("htmx:error", stop);
  }

  function focusWhatMatters() {
    const first = document.getElementById("error") || document.getElementById("preview");
    if (first) first.focus();
  }

  document.addEventListener("keydown", onKey);
  document.addEventListener("htmx:after:swap", () => {
    const answer = document.getElementById("answer");
    if (answer && answer.dataset.focus !== "no") answer.focus({ preventScroll: true });
  });
  keepDrafts();
  wireReplay();
  focusWhatMatters();
})();
