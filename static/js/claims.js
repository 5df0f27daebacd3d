/* The request form: what is shown and what would be created never differ. Pages work without this. */
"use strict";
(() => {
  let edits = 0;
  let asked = 0;

  const FORMS = "#wish, #own";

  /* From the first key until a preview of the last one is there, the old preview can't be created. */
  function hold() {
    for (const button of document.querySelectorAll("#create-button, #validate-button")) button.disabled = true;
  }

  /* What a person reads off the preview, or will, since it was asked for. */
  let known = "";
  function values() {
    return [...document.querySelectorAll(FORMS)].map((form) => new URLSearchParams(new FormData(form))).join("\n");
  }

  /* What the class settled and nobody chose does not stand against another class or another memory: the mode, until a
     person has pressed one, and the profile. Whole is what a form says before anything was chosen. */
  let pressed = false;
  function unsettle(field) {
    if (field.name === "mode") pressed = true;
    const whole = document.querySelector("#wish [name=mode][value=whole]");
    if (field.name === "class" && whole && !pressed) {
      whole.disabled = false;
      whole.checked = true;
    }
    const profile = document.getElementById("field-profile");
    if (profile && (field.name === "class" || field.name === "memory")) profile.value = "";
  }

  /* On leaving a field its "change" tells again what "input" told before: were it an edit, a press of Create would
     find the button disabled by the very press. */
  function edited(event) {
    if (!event.target.closest?.(FORMS)) return;
    if (event.type === "change" && asked === edits && values() === known) {
      event.stopPropagation();
      return;
    }
    unsettle(event.target);
    edits += 1;
    hold();
  }

  /* Without an answer the plain way is left: a button that loads the page anew. */
  function unanswered(event) {
    if (!event.target.closest?.(FORMS) || asked !== edits) return;
    known = "";
    for (const plain of document.querySelectorAll(".wish [data-without-script]")) plain.removeAttribute("data-without-script");
  }

  /* What a person opened stays open: an answer always comes with everything closed. */
  let opened = [];
  function remember() {
    opened = [...document.querySelectorAll("#desk details[open][id]")].map((each) => each.id);
  }
  function reopen() {
    for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
  }

  document.addEventListener("htmx:before:swap", remember);
  document.addEventListener("htmx:after:swap", reopen);
  document.addEventListener("htmx:error", unanswered);
  document.addEventListener("htmx:response:error", unanswered);
  /* Caught on the way down, since on "change" htmx asks at once: the count must stand before it does. */
  document.addEventListener("input", edited, true);
  document.addEventListener("change", edited, true);
  document.addEventListener("htmx:config:request", (event) => {
    if (!event.target.closest?.(FORMS)) return;
    asked = edits;
    known = values();
  });
  document.addEventListener("htmx:after:swap", () => {
    if (asked === edits) known = values();
    else hold();
  });
  known = values();
})();
