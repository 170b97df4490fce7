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

// Charts of the numbers in the table of a history, oldest first. `redraw` draws them again after new rows.
const charts = new WeakMap();

function samplesOf(section) {
  const rows = [...section.querySelectorAll("tr[data-sample]")].reverse();
  const samples = rows.map((row) => row.dataset.sample.split(" ").map(Number));
  return [0, 1, 2, 3].map((index) => samples.map((sample) => sample[index]));
}

function redraw(section) {
  if (!section) return;
  const drawn = charts.get(section);
  if (!drawn) {
    if (section.querySelector("tr[data-sample]")) draw(section);
    return;
  }
  const columns = samplesOf(section);
  drawn[0].setData([columns[0], columns[1]]);
  drawn[1].setData([columns[0], columns[2], columns[3]]);
}

function draw(section) {
  const columns = samplesOf(section);
  const place = section.querySelector(".charts");
  const colours = getComputedStyle(document.documentElement);
  const colour = (name) => colours.getPropertyValue(name).trim();
  const axis = () => ({ stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 } });
  const length = Number(place.dataset.length);
  // The times of the pages are UTC, with 24 hours; those of uPlot have AM and PM.
  const clock = (_, times, axisNumber, space, step) =>
    times.map((time) => {
      const text = new Date(time * 1e3).toISOString();
      return text.slice(11, 16) === "00:00" ? text.slice(5, 10) : text.slice(11, step < 60 ? 19 : 16);
    });
  const frames = [0, 1].map(() => document.createElement("div"));
  frames.forEach((frame) => (frame.className = "chart"));
  place.append(...frames);
  // Not the range that uPlot proposes: for a single sample, that is one of years.
  const span = (plot) => {
    const times = plot.data[0];
    const last = times[times.length - 1];
    return [Math.min(times[0], last - length), last];
  };
  const chart = (frame, title, data, series) => {
    const options = {
      title,
      width: Math.max(frame.clientWidth - 26, 200),
      height: 200,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC"),
      scales: { x: { range: span }, y: { range: (_, least, most) => [0, Math.max(most * 1.1, 1)] } },
      axes: [{ ...axis(), values: clock }, { ...axis(), size: 60 }],
      series: [{ label: "Time (UTC)", value: "{HH}:{mm}:{ss}" }, ...series],
    };
    return new uPlot(options, data, frame);
  };
  charts.set(section, [
    chart(frames[0], "Messages", [columns[0], columns[1]], [{ label: "Messages", stroke: colour("--accent"), width: 2 }]),
    chart(frames[1], "Messages per second", [columns[0], columns[2], columns[3]], [
      { label: "In", stroke: colour("--good"), width: 2 },
      { label: "Out", stroke: colour("--warn"), width: 2, dash: [6, 4] },
    ]),
  ]);
}

document.querySelectorAll(".history:has(tr[data-sample])").forEach(draw);
