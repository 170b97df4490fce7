"use strict";
// The console works without this file. It lets htmx swap parts of pages under Trusted Types, and adds shortcuts.

// All HTML that htmx parses is of this server, which escapes every value in it. Code in attributes is never run.
const policy = window.trustedTypes
  ? window.trustedTypes.createPolicy("msmq", { createHTML: (text) => text })
  : { createHTML: (text) => text };

function refuse() {
  throw new Error("code in attributes is not run");
}

htmx.registerExtension("console", {
  init: (api) => api.initSecurity(policy, refuse, refuse),
});

document.documentElement.dataset.script = "on";

document.addEventListener("change", (event) => {
  if (event.target.matches("select[data-submit]")) event.target.form.requestSubmit();
  if (event.target.matches("input[data-all]")) {
    for (const box of event.target.closest("table").querySelectorAll('input[name="id"]')) {
      box.checked = event.target.checked;
    }
  }
});

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const find = document.getElementById("find");
    if (find) {
      event.preventDefault();
      find.focus();
    }
  }
});
