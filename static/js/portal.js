/* What makes pages smoother. Nothing here is needed: every page works without it. */
"use strict";
(() => {
  const THEMES = { system: "as the system", light: "light", dark: "dark" };
  const root = document.documentElement;

  function showTheme(button) {
    const theme = root.dataset.theme || "system";
    const text = `Colours: ${THEMES[theme]}`;
    button.querySelector("#theme-name").textContent = text;
    button.title = text;
  }

  function nextTheme(button) {
    const names = Object.keys(THEMES);
    const theme = names[(names.indexOf(root.dataset.theme || "system") + 1) % names.length];
    root.dataset.theme = theme;
    if (theme === "system") localStorage.removeItem("theme");
    else localStorage.setItem("theme", theme);
    showTheme(button);
  }

  async function copy(button) {
    const source = document.querySelector(button.dataset.copy);
    if (!source) return;
    await navigator.clipboard.writeText(source.textContent);
    const label = [...button.childNodes];
    button.textContent = "Copied";
    setTimeout(() => { button.replaceChildren(...label); }, 1500);
  }

  document.addEventListener("click", (event) => {
    const target = event.target.closest("#theme, [data-copy]");
    if (!target) return;
    if (target.id === "theme") nextTheme(target);
    else copy(target);
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-submit-on-change]")) event.target.form.requestSubmit();
  });

  /* Menus close when the pointer or the focus goes elsewhere. */
  for (const kind of ["click", "focusin"]) {
    document.addEventListener(kind, (event) => {
      for (const menu of document.querySelectorAll("details.menu[open]")) {
        if (!menu.contains(event.target)) menu.open = false;
      }
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
  });

  root.dataset.script = "on";
  const theme = document.getElementById("theme");
  if (theme) { theme.hidden = false; showTheme(theme); }
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
  document.querySelector("[data-focus]")?.focus();
})();
