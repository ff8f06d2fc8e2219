"use strict";
/* The lab of errors of products of matrices. */
const OWN = ["a", "b", "accumulator", "product", "rounding", "chunk", "result", "lanes", "kind"];
const FIELDS = ["unit", "m", "n", "k", "distribution", "seed", ...OWN.map((name) => "own-" + name)];
let latest = null;

/* The unit as the core takes it: a named one, or the text of the fields that are filled. */
function spec() {
  if ($("unit").value) return SOFTNUM_DATA.units[$("unit").value];
  const exact = $("own-kind").value === "1";
  return OWN.filter((name) => $("own-" + name).value.trim() && !(exact && ["product", "chunk", "result", "lanes"].includes(name)))
    .map((name) => `${name}=${$("own-" + name).value.trim()}`).join(";");
}

function histogram(answer, title) {
  const bars = answer.bins, wide = `${(94 / Math.max(bars.length, 1)).toFixed(3)}%`; // places on the screen alone
  const x = (i, part = 0) => `${(3 + (94 * (i + part)) / Math.max(bars.length, 1)).toFixed(3)}%`;
  const every = Math.ceil(bars.length / 8);
  const marks = bars.flatMap((bar, i) => [
    make("svg:rect", { x: x(i), width: wide, y: (150 - 130 * bar.height).toFixed(2), height: (130 * bar.height).toFixed(2) },
      make("svg:title", {}, `2^${bar.exponent}: ${bar.count}`)),
    ...(i % every ? [] : [make("svg:text", { x: x(i, 0.5), y: 166 }, `2^${bar.exponent}`)]),
  ]);
  const said = bars.map((bar) => `2^${bar.exponent}: ${bar.count}`).join(", ");
  const figure = make("figure", {}, make("figcaption", {}, title),
    make("svg:svg", { height: 172, role: "img", "aria-label": `Relative errors from each power of two on. ${said || "none"}` },
      make("svg:line", { x1: "2%", x2: "98%", y1: 150, y2: 150 }), ...marks));
  const [mean, bias, largest] = answer.short || ["none", "none", "none"];
  const facts = make("dl", {});
  fill_list(facts, [["results", `${answer.results}`], ["without error", `${answer.exact}`], ["mean error", mean], ["bias", bias],
    ["largest error", largest], ["infinite, NaN or beside 0", `${answer.special}`]]);
  figure.append(facts);
  return figure;
}

function run() {
  const wanted = spec(), answer = ask("gemm", wanted, $("m").value, $("n").value, $("k").value, $("distribution").value, $("seed").value);
  if (!answer) return;
  if (latest) latest.remove();
  const name = $("unit").value || wanted.replaceAll(";", ", ");
  latest = histogram(answer, `${name}: ${$("m").value} x ${$("n").value}, sums of ${$("k").value}, ${$("distribution").value}, seed ${$("seed").value}`);
  $("shown").prepend(latest);
  state.write(Object.fromEntries(FIELDS.map((id) => [id, $(id).value])));
}

function restore(kept) {
  for (const id of FIELDS) if (id in kept) $(id).value = kept[id];
  $("own").disabled = Boolean($("unit").value);
  run();
}

lab(() => {
  $("unit").replaceChildren(make("option", { value: "" }, "of your own"), ...Object.keys(SOFTNUM_DATA.units).map((name) => make("option", { value: name }, name)));
  $("unit").value = "nvidia_h100_e4m3";
  $("distribution").replaceChildren(...["uniform", "bell", "positive", "wide", "outliers"].map((name) => make("option", { value: name }, name)));
  $("distribution").value = "bell";
  $("own-rounding").replaceChildren(...SOFTNUM_DATA.modes.map((name, i) => make("option", { value: i }, name)));
  $("unit").addEventListener("change", () => { $("own").disabled = Boolean($("unit").value); });
  $("run").addEventListener("click", run);
  $("keep").addEventListener("click", () => { latest = null; });
}, restore);
