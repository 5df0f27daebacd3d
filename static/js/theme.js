/* Colours before the first paint: the choice kept in this browser, else the system's. Loaded without defer. */
"use strict";
(() => {
  const choice = localStorage.getItem("theme");
  if (choice === "light" || choice === "dark") document.documentElement.dataset.theme = choice;
})();
