"use strict";
/* The lab of units. */
let shown = "", timer = 0, answers = {};

const operands_of = (spec) => ["a", "b"].map((name) => spec.split(";").find((part) => part.startsWith(name + "=")).slice(2));
const operands_text = (spec) => [...new Set(operands_of(spec))].join(" x ");
const inputs = () => ["a", "b", "c"].map((id) => $(id).value.trim());

/* The example whose numbers are those on the page, whose results of other units are in the file. */
const example_of = ([a, b, c]) => SOFTNUM_DATA.examples.find((e) => e.a === a && e.b === b && e.c === c);

function show_results() {
  const [a, b, c] = inputs(), target = $("target").value.trim(), wanted = $("operands").value, part = $("filter").value.trim();
  const names = Object.keys(SOFTNUM_DATA.units).filter((name) =>
    (!wanted || operands_text(SOFTNUM_DATA.units[name]) === wanted) && name.includes(part));
  answers = {};
  let failed = "";
  for (const name of names) {
    const answer = softnum.call("dot", SOFTNUM_DATA.units[name], a, b, c, target);
    if (answer.error) failed = failed || answer.error;
    answers[name] = answer;
  }
  const whole = names.length && names.every((name) => answers[name].error);
  show_error(whole ? failed : "");
  names.sort((x, y) => Boolean(answers[y].target) - Boolean(answers[x].target)); // stable: else as in the list
  const rows = whole ? [] : names.map((name) => {
    const got = answers[name], spec = SOFTNUM_DATA.units[name];
    if (got.error) return row([name, operands_text(spec), "", ["long", got.error], "", ""], { class: "other" });
    return row([make("button", { type: "button", onclick: () => { show_steps(name); $("steps").scrollIntoView(); } }, name), operands_text(spec), ["code", got.result.code],
      ["long", `${got.result.value} (${got.format})`], ["long", got.exact ? got.is_exact ? "the same" : got.exact.value : "no such unit"],
      got.inexact ? "rounded" : "exact"], { class: got.target ? "hit" : null });
  });
  const example = example_of([a, b, c]);
  const others = Object.entries(SOFTNUM_DATA.others).filter(([name]) => !wanted && name.includes(part)).map(([name, kind]) =>
    row([name, kind, "", ["long", example ? `${example.others[name]} (from the file)` : "in Python alone"], "", ""],
      { class: "other" }));
  fill_rows($("results"), [...rows, ...others]);
  const hits = names.filter((name) => answers[name].target);
  $("found").textContent = whole || !target ? "" : hits.length ? `${hits.length} of ${names.length} units give ${target}.`
    : `None of these ${names.length} units gives ${target}.`;
  if (shown && answers[shown] && !answers[shown].error) show_steps(shown);
  else $("steps").hidden = true;
  keep();
}

function show_steps(name) {
  const [a, b, c] = inputs(), got = ask("dot", SOFTNUM_DATA.units[name], a, b, c, "", "trace");
  if (!got) return;
  shown = name;
  $("steps").hidden = false;
  $("steps-title").textContent = `Steps of ${name}`;
  $("unit-text").textContent = SOFTNUM_DATA.units[name].replaceAll(";", ", ") + (got.c.length ? `; from c = ${got.c[0].value}` : "; from +0");
  $("step").max = got.trace.length;
  $("step").value = got.trace.length;
  fill_rows($("trace"), got.trace.map((step, i) => row([`${i + 1}`, ["long", got.a[i].value], ["long", got.b[i].value],
    ["long", step.product.exact ? step.product.value : `${step.product.value}, rounded to binary64`], ["long", step.value], ["code", step.code]])));
  show_step();
  keep();
}

/* Mark a step's row, and show its sum. */
function show_step() {
  [...$("trace").tBodies[0].rows].forEach((r, i) => r.classList.toggle("hit", `${i + 1}` === $("step").value));
  const at = $("trace").tBodies[0].rows[Number($("step").value) - 1];
  if (at) $("sum-line").textContent = `after ${at.cells[0].textContent} products: ${at.cells[4].textContent}`;
}

function play() {
  clearInterval(timer);
  $("step").value = 1;
  show_step();
  timer = setInterval(() => {
    if ($("step").value === $("step").max) clearInterval(timer);
    else $("step").stepUp();
    show_step();
  }, matchMedia("(prefers-reduced-motion: reduce)").matches ? 1500 : 500);
}

function draw() {
  const drawn = ask("draw", $("length").value, $("distribution").value, $("seed").value, "e5m7");
  if (!drawn) return;
  for (const name of ["a", "b", "c"]) $(name).value = drawn[name].map((n) => n.value).join(" ");
  show_results();
}

function keep() {
  const [a, b, c] = inputs();
  state.write({ a, b, c, target: $("target").value, operands: $("operands").value, filter: $("filter").value, unit: shown });
}

function restore(kept) {
  const first = SOFTNUM_DATA.examples[0];
  for (const id of ["a", "b", "c"]) $(id).value = id in kept ? kept[id] : first[id];
  for (const id of ["target", "operands", "filter"]) $(id).value = kept[id] || "";
  shown = Object.hasOwn(SOFTNUM_DATA.units, kept.unit || "") ? kept.unit : "";
  show_results();
}

lab(() => {
  const kinds = [...new Set(Object.values(SOFTNUM_DATA.units).map(operands_text))].sort();
  $("operands").replaceChildren(make("option", { value: "" }, "all"), ...kinds.map((kind) => make("option", { value: kind }, kind)));
  $("example").replaceChildren(...SOFTNUM_DATA.examples.map((e, i) => make("option", { value: i }, e.title)));
  $("distribution").replaceChildren(...["uniform", "bell", "positive", "wide", "outliers"].map((name) => make("option", { value: name }, name)));
  $("example").addEventListener("change", () => {
    const e = SOFTNUM_DATA.examples[$("example").value];
    for (const id of ["a", "b", "c"]) $(id).value = e[id];
    show_results();
  });
  for (const id of ["a", "b", "c", "target", "operands", "filter"]) $(id).addEventListener("change", show_results);
  $("draw").addEventListener("click", draw);
  $("play").addEventListener("click", play);
  $("step").addEventListener("input", () => { clearInterval(timer); show_step(); });
}, restore);
