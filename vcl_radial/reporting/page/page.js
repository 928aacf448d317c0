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
})();
