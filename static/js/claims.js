/* The request form: what is shown and what would be created never differ. Pages work without this. */
"use strict";
(() => {
  /* From the first key until the new preview is there, the old one can't be created. */
  function stale(event) {
    if (!event.target.closest?.("#wish")) return;
    const button = document.getElementById("create-button");
    if (button) button.disabled = true;
  }

  document.addEventListener("input", stale);
  document.addEventListener("change", stale);
})();
