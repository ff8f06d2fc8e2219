"use strict";
/* The C core, asked by lines of text and answering in JSON; and what the pages share. No page computes a number: what
 * is shown is what came back. */
const softnum = (() => {
  const bytes = Uint8Array.from(atob(SOFTNUM_WASM), (c) => c.charCodeAt(0));
  // the core calls nothing of the system's; what libc would print on an abort goes nowhere
  const system = new Proxy({}, { get: (_, name) => (...a) => { throw new Error("the core called " + String(name)); } });
  let core = null;
  const encoder = new TextEncoder(), decoder = new TextDecoder();
  const ready = WebAssembly.instantiate(bytes, { wasi_snapshot_preview1: system, env: system }).then((made) => {
    core = made.instance.exports;
    if (core._initialize) core._initialize();
  });
  const text = (...lines) => {
    const request = encoder.encode(lines.map((line) => String(line).replace(/\n/g, " ")).join("\n"));
    const at = core.pg_room(request.length);
    new Uint8Array(core.memory.buffer, at, request.length).set(request);
    const answer = core.pg_call(), memory = new Uint8Array(core.memory.buffer);
    return decoder.decode(memory.subarray(answer, memory.indexOf(0, answer)));
  };
  return { ready, text, call: (...lines) => JSON.parse(text(...lines)) };
})();

const $ = (id) => document.getElementById(id);

/* An element, its attributes and children; text is text. */
function make(name, attributes, ...children) {
  const at = name.startsWith("svg:"), e = at ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4))
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {}))
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) e.setAttribute(key, value === true ? "" : value);
  e.append(...children);
  return e;
}

function show_error(text) {
  $("error").textContent = text || "";
  $("error").hidden = !text;
}

/* The answer, or null where it is an error, which is shown. */
function ask(...lines) {
  const answer = softnum.call(...lines);
  show_error(answer.error);
  return answer.error ? null : answer;
}

function fill_list(list, pairs) {
  list.replaceChildren(...pairs.flatMap(([term, value]) => [make("dt", {}, term), make("dd", {}, value)]));
}

function fill_rows(table, rows) {
  table.tBodies[0].replaceChildren(...rows);
}

/* A row: the first cell is its heading; a cell is text, an element, or [class, text]. */
function row(cells, attributes) {
  return make("tr", attributes, ...cells.map((cell, i) => {
    const classed = Array.isArray(cell);
    return make(i ? "td" : "th", { scope: i ? null : "row", class: classed ? cell[0] : null }, classed ? cell[1] : cell);
  }));
}

/* Keep what a page shows in its address, so that a link to it shows the same. */
const state = {
  read: () => Object.fromEntries(new URLSearchParams(location.hash.slice(1))),
  write(values) {
    const hash = "#" + new URLSearchParams(values);
    if (hash === location.hash) return;
    try {
      history.replaceState(null, "", hash);
    } catch {
      location.hash = hash;
    }
  },
};

/* What a page does once the core is there, and when someone changes the address by hand. */
function lab(start, restore) {
  softnum.ready.then(() => {
    start();
    restore(state.read());
    window.addEventListener("hashchange", () => restore(state.read()));
    document.documentElement.dataset.state = "ready";
  }).catch((error) => {
    show_error("This page could not start: " + error.message);
    document.documentElement.dataset.state = "failed";
    throw error;
  });
}

/* Numbers of a line, at their places; the one in `here` marked, and a place beside it. */
function draw_line(figure, numbers, here, typed, label, choose) {
  if (!numbers) {
    figure.replaceChildren();
    return;
  }
  const x = (at, left = 0) => `${(at * 94 + 3 - left).toFixed(3)}%`; // where on the paper, and nothing else
  const marks = numbers.flatMap((n, i) => [
    make("svg:line", { x1: x(n.at), x2: x(n.at), y1: 24, y2: i === here ? 50 : 44, class: i === here ? "here" : "" }),
    make("svg:rect", { x: x(n.at, 1), y: 14, width: "2%", height: 36, class: "hand", onclick: () => choose && choose(n.code) },
      make("svg:title", {}, `${n.value} (code ${n.code})`)),
  ]);
  const shown = [...new Set([0, here, numbers.length - 1])].map((i) => make("svg:text", { x: x(numbers[i].at),
    y: i === here ? 66 : 14, class: i === here ? "" : i ? "end" : "start" }, short(numbers[i].value)));
  const point = typed === undefined ? [] : [make("svg:circle", { cx: x(typed), cy: 34, r: 5, class: "typed" })];
  figure.replaceChildren(make("svg:svg", { height: 74, role: "img", "aria-label": label },
    make("svg:line", { x1: "1%", x2: "99%", y1: 34, y2: 34, class: "gap" }), ...marks, ...point, ...shown));
}

/* A long text cut for a label. */
const short = (text) => (text.length > 14 ? text.slice(0, 13) + "\u2026" : text);
