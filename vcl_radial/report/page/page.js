"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  root.classList.add("scripted");

  // Light or dark: as the system, until the reader chooses; kept where the browser allows it.
  const kept = {
    get: () => { try { return localStorage.getItem("vcl-radial-theme"); } catch { return null; } },
    set: (value) => { try { localStorage.setItem("vcl-radial-theme", value); } catch { /* not kept */ } },
  };
  const themes = ["auto", "light", "dark"];
  const theme = document.getElementById("theme");
  const paint = (name) => {
    if (name === "auto") delete root.dataset.theme; else root.dataset.theme = name;
    theme.querySelector("span").textContent = name;
    theme.setAttribute("aria-label", `Light or dark: ${name === "auto" ? "as the system" : name}`);
  };
  let current = themes.includes(kept.get()) ? kept.get() : "auto";
  paint(current);
  theme.addEventListener("click", () => {
    current = themes[(themes.indexOf(current) + 1) % themes.length];
    kept.set(current);
    paint(current);
  });
  document.getElementById("print").addEventListener("click", () => window.print());

  // Sorting. What is not defined stays last, whichever way.
  const said = document.getElementById("said");
  const numbers = (a, b, sign) =>
    (a === "") - (b === "") || (a === b ? 0 : sign * (Number(a) - Number(b)));
  const words = (a, b) => a.localeCompare(b, "en", { numeric: true });
  const sort = (head) => {
    const order = head.getAttribute("aria-sort") === "none"
      ? head.dataset.first
      : head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    const table = head.closest("table"), body = table.tBodies[0], index = head.cellIndex;
    const sign = order === "ascending" ? 1 : -1, isNumber = head.classList.contains("number");
    const value = (row) => row.cells[index].dataset.v;
    const compare = (a, b) => isNumber ? numbers(a, b, sign) : sign * words(a, b);
    body.append(...[...body.rows].sort((one, two) => compare(value(one), value(two))));
    for (const other of head.parentNode.cells) {
      if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", other === head ? order : "none");
    }
    said.textContent = `sorted by ${head.textContent}, ${order}`;
  };
  for (const head of all("table.sortable thead th[aria-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(head));
  }

  // Curves: one alone while it is pointed at, hidden when clicked; two axes.
  for (const card of all(".curves")) {
    const curves = (m) => all(`.curve[data-m="${m}"]`, card);
    const alone = (m) => {
      card.classList.toggle("focused", m !== null);
      for (const curve of all(".curve", card)) curve.classList.toggle("chosen", curve.dataset.m === m);
    };
    for (const button of all(".legend button", card)) {
      const m = button.dataset.m;
      const shown = () => button.getAttribute("aria-pressed") === "true";
      button.addEventListener("click", () => {
        button.setAttribute("aria-pressed", String(!shown()));
        for (const curve of curves(m)) curve.classList.toggle("gone", !shown());
        alone(shown() ? m : null);
      });
      for (const event of ["pointerenter", "focus"]) {
        button.addEventListener(event, () => { if (shown()) alone(m); });
      }
      for (const event of ["pointerleave", "blur"]) button.addEventListener(event, () => alone(null));
    }
    for (const curve of all(".curve", card)) {
      curve.addEventListener("pointerenter", () => alone(curve.dataset.m));
      curve.addEventListener("pointerleave", () => alone(null));
    }
    const stretch = card.querySelector(".stretch");
    stretch?.addEventListener("click", () => {
      card.classList.toggle("swapped");
      stretch.setAttribute("aria-pressed", String(stretch.getAttribute("aria-pressed") !== "true"));
    });
  }

  // A link to a folded method opens it.
  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) target.open = true;
  };
  window.addEventListener("hashchange", open);
  open();
})();
