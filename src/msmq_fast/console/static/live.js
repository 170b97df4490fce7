"use strict";
// Applies the changes that the server streams to the page (streams.py). A tab has a stream only while it is
// visible. Without a stream, it asks every few seconds.

(() => {
  const button = document.getElementById("live");
  if (!button) return;
  const POLL = 5000; // milliseconds
  let source = null;
  let timer = 0;
  let opened = ""; // the address of the page that is followed
  let since = newest();
  let over = false;

  function newest() {
    const row = document.querySelector("tbody[data-append] tr[data-row]");
    return row ? Number(row.dataset.row) : Math.floor(Date.now() / 1000);
  }

  function parse(html) {
    const template = document.createElement("template");
    template.innerHTML = policy.createHTML(html);
    return template.content;
  }

  // Changes the cells that differ. The box that selects a row stays as it is, and so does a cell with the focus
  // unless its text differs.
  function update(row, next) {
    for (const { name, value } of next.attributes) row.setAttribute(name, value);
    if (row.cells.length !== next.cells.length) {
      row.replaceChildren(...next.childNodes);
      return;
    }
    [...next.cells].forEach((cell, index) => {
      const old = row.cells[index];
      if (old.innerHTML === cell.innerHTML || old.matches(".pick")) return;
      if (old.contains(document.activeElement) && old.textContent === cell.textContent) return;
      old.replaceChildren(...cell.childNodes);
    });
  }

  function rows(table, { order, html }) {
    const body = [...document.querySelectorAll("tbody[data-rows]")].find((one) => one.dataset.rows === table);
    if (!body) return;
    const focus = body.contains(document.activeElement) ? document.activeElement : null;
    const known = new Map([...body.rows].map((row) => [row.dataset.row, row]));
    for (const [key, text] of Object.entries(html)) {
      const next = parse(text).firstElementChild;
      if (known.has(key)) update(known.get(key), next);
      else known.set(key, next);
    }
    const most = Number(body.dataset.append);
    const wanted = most ? [...new Set([...order, ...[...body.rows].map((row) => row.dataset.row)])].slice(0, most) : order;
    let place = body.firstElementChild;
    for (const key of wanted) {
      const row = known.get(key);
      if (row === place) place = place.nextElementSibling;
      else if (row) body.insertBefore(row, place);
    }
    const stay = new Set(wanted);
    for (const [key, row] of known) if (!stay.has(key)) row.remove();
    if (focus && focus !== document.activeElement && focus.isConnected) focus.focus({ preventScroll: true });
    if (most) redraw(body.closest(".history"));
  }

  function apply(found) {
    if (found.since) since = found.since;
    for (const part of document.querySelectorAll("[data-part]")) {
      const next = (found.parts || {})[part.dataset.part];
      if (!next || next.shape === part.dataset.shape) continue;
      part.replaceChildren(parse(next.html));
      part.dataset.shape = next.shape;
      htmx.process(part);
      part.querySelectorAll(".history").forEach(redraw);
    }
    for (const figure of document.querySelectorAll("[data-live]")) {
      const text = (found.texts || {})[figure.dataset.live];
      if (text !== undefined && figure.textContent !== text) figure.textContent = text;
    }
    for (const [table, content] of Object.entries(found.rows || {})) rows(table, content);
    for (const bar of document.querySelectorAll("meter[data-of]")) bar.value = Number(textOf(bar.dataset.of)) || 0;
  }

  function textOf(key) {
    const figure = [...document.querySelectorAll("[data-live]")].find((one) => one.dataset.live === key);
    return figure ? figure.textContent : "";
  }

  function say(state, text) {
    button.dataset.state = state;
    button.textContent = text;
    button.setAttribute("aria-pressed", String(state !== "off"));
  }

  function tell(text) {
    const notice = document.createElement("div");
    notice.className = "notice partial";
    notice.textContent = text;
    document.getElementById("notices").append(notice);
  }

  function end(text) {
    over = true;
    stop();
    say("off", "Not live");
    button.disabled = true;
    tell(text);
  }

  const logOff = () => end("The session has ended: this page is no longer up to date. Reload it to log on again.");

  function address(more) {
    opened = location.pathname + location.search;
    return `/ui/live?${new URLSearchParams({ page: opened, since, ...more })}`;
  }

  function moved() {
    return opened !== location.pathname + location.search;
  }

  async function ask() {
    clearTimeout(timer);
    timer = setTimeout(ask, POLL);
    try {
      const answer = await fetch(address({ poll: "1" }));
      if (answer.status === 401) logOff();
      else if (!answer.ok) end("This page can no longer be read.");
      else if (!moved()) apply(await answer.json());
    } catch {
      say("lost", "No connection");
      return;
    }
    if (!over) say("on", "Live, every 5 s");
  }

  function start() {
    stop();
    if (over || document.hidden || sessionStorage.getItem("live") === "off") return;
    say("on", "Live");
    source = new EventSource(address({}));
    source.onopen = () => say("on", "Live");
    source.onmessage = (event) => {
      if (moved()) start();
      else apply(JSON.parse(event.data));
    };
    source.addEventListener("ended", logOff);
    source.addEventListener("failed", (event) => end(`This page can no longer be read: ${JSON.parse(event.data)}`));
    source.onerror = () => {
      say("lost", "No connection");
      if (source.readyState === EventSource.CLOSED) ask();
    };
  }

  function stop() {
    clearTimeout(timer);
    if (source) source.close();
    source = null;
  }

  button.hidden = false;
  button.addEventListener("click", () => {
    const off = sessionStorage.getItem("live") !== "off";
    sessionStorage.setItem("live", off ? "off" : "on");
    if (off) {
      stop();
      say("off", "Updates paused");
    } else start();
  });
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
  window.addEventListener("pagehide", stop);
  window.addEventListener("pageshow", (event) => event.persisted && start());
  if (sessionStorage.getItem("live") === "off") say("off", "Updates paused");
  else start();
})();
