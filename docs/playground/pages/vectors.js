"use strict";
/* The lab of vectors. */
const FIELDS = ["operation", "format", "result", "rounding", "overflow", "tiny", "count", "seed"];
let link = null;

const of = (id) => $(id).value.trim();

function generate() {
  const rules = [of("rounding"), of("overflow"), 32, of("tiny"), 0].join(",");
  const text = softnum.text("vectors", of("operation"), of("format"), of("result"), rules, of("count"), of("seed"));
  const failed = text.startsWith("{");
  show_error(failed ? JSON.parse(text).error : "");
  $("download").hidden = failed;
  $("preview").textContent = failed ? "" : text.split("\n").slice(0, 26).join("\n");
  $("said").textContent = failed ? "" : text.split("\n").filter((line) => /^# (op|vectors|method):/.test(line)).map((line) => line.slice(2)).join(", ");
  if (link) URL.revokeObjectURL(link);
  link = failed ? null : URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  if (failed) return;
  const name = `${of("operation")}-${of("format")}.txt`.replace(/[^\w.-]+/g, "_");
  $("download").href = link;
  $("download").download = name;
  $("download").textContent = `Download ${name}`;
  state.write(Object.fromEntries(FIELDS.map((id) => [id, $(id).value])));
}

function restore(kept) {
  for (const id of FIELDS) if (id in kept) $(id).value = kept[id];
  generate();
}

lab(() => {
  $("operation").replaceChildren(...SOFTNUM_DATA.operations.map((name) => make("option", { value: name }, name)));
  $("operation").value = "multiply";
  $("rounding").replaceChildren(...SOFTNUM_DATA.modes.slice(0, SOFTNUM_DATA.modes.indexOf("stochastic"))
    .map((name, i) => make("option", { value: i }, name)));
  $("generate").addEventListener("click", generate);
}, restore);
