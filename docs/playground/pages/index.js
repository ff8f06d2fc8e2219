"use strict";
/* The explorer of formats. */
const RULES = ["", "infinity", "saturate", "saturate_finite", "wrap", "", "p3109_v3_2_1"];
let format = "e4m3fn", code = "", facts = null, file = null; // file: a format that C lacks, from data.js

function put_formats() {
  const options = (names) => names.map((name) => make("option", { value: name }, name));
  $("format").replaceChildren(make("optgroup", { label: "computed here" }, ...options(SOFTNUM_DATA.formats)),
    make("optgroup", { label: "from a file made by the Python package" }, ...options(Object.keys(SOFTNUM_DATA.tables))),
    make("option", { value: "", hidden: true }, "another"));
}

const number_of = (n) => n.value + (n.power ? ` = ${n.power.replace("*", " \u00b7 ").replace("^", "^")}` : "");

function show_facts() {
  $("source").hidden = !file;
  $("rounding").hidden = Boolean(file);
  if (file) {
    $("source").textContent = `The C library does not compute in ${format}. Its ${file.codes.length} values were written by the `
      + "Python package when the pages were built; roundings of what you type are in the package: softnum.quantize.";
    fill_list($("facts"), [["width", `${file.bits} bits`], ["what it is", file.about]]);
    return;
  }
  const yes = ["zero", "negative_zero", "infinities", "nan", "subnormals"].filter((name) => facts[name]);
  const no = ["zero", "negative_zero", "infinities", "nan", "subnormals"].filter((name) => !facts[name]);
  const words = (names) => names.join(", ").replace("negative_zero", "-0").replace("nan", "NaN") || "nothing";
  fill_list($("facts"), [
    ["format", facts.name], ["width", `${facts.bits} bits: ` + facts.groups.map(([name, n]) => `${n} ${name}`).join(", ")],
    ["largest", number_of(facts.largest)], ["least above 0", number_of(facts.least)],
    ...(facts.family === "float" ? [["exponents", `${facts.emin} to ${facts.emax}`], ["it has", words(yes)], ["it lacks", words(no)]]
      : [["unit", facts.least.power]]),
  ]);
  $("overflow").replaceChildren(...facts.overflow.map((rule) => make("option", { value: rule }, RULES[rule])));
  $("overflow").value = facts.default_overflow;
}

/* A code's facts: from C, or the file. */
function look(asked, flip) {
  if (!file) return ask("code", format, asked, flip === undefined ? "" : flip);
  let bits = (file.codes.find((c) => c.code === asked.toLowerCase().padStart(file.digits, "0")) || {}).bits;
  if (bits === undefined) {
    show_error(`code: '${asked}' is no code of ${format}`);
    return null;
  }
  show_error("");
  if (flip !== undefined) bits = bits.slice(0, flip) + (bits[flip] === "0" ? "1" : "0") + bits.slice(flip + 1);
  const by = (key, value) => file.codes.find((c) => c[key] === value), here = by("bits", bits);
  return { ...here, down: here.down && by("code", here.down), up: here.up && by("code", here.up) };
}

function show_code(asked, flip) {
  const found = look(asked, flip);
  if (!found) return;
  code = found.code;
  const groups = file ? [["integer", file.bits]] : facts.groups;
  const kinds = groups.flatMap(([name, n]) => Array(n).fill(name));
  const focused = [...$("bits").children].indexOf(document.activeElement);
  $("bits").replaceChildren(...[...found.bits].map((bit, i) => make("button", {
    type: "button", class: kinds[i], "aria-pressed": bit === "1" ? "true" : "false",
    "aria-label": `bit ${i + 1} from the left, ${kinds[i]}`, tabindex: i === Math.max(focused, 0) ? 0 : -1, onclick: () => show_code(code, i),
  }, bit)));
  if (focused >= 0) $("bits").children[focused].focus();
  $("value").textContent = found.value;
  const about = [["code", "0x" + found.code], ["kind", found.kind]];
  if (found.power) about.push(["exactly", found.power]);
  for (const way of ["down", "up"])
    if (found[way]) about.push([way === "up" ? "next higher" : "next lower", `${found[way].value} (0x${found[way].code})`]);
  fill_list($("about"), about);
  $("code").value = found.code;
  for (const way of ["down", "up"]) {
    $(way).disabled = !found[way] || found[way].code === found.code;
    $(way).onclick = () => show_code(found[way].code);
  }
  draw_line($("line"), found.line, found.here, undefined, `Values about ${found.value}: ` + (found.line || []).map((n) => n.value).join(", "),
    (chosen) => show_code(chosen));
  keep();
}

function show_roundings() {
  if (file) return;
  const rules = [0, $("overflow").value, $("random-bits").value, $("tiny").value, $("flush").value].join(",");
  const answer = ask("round", format, $("number").value.trim(), rules, $("word").value.trim());
  $("roundings").hidden = !answer;
  draw_line($("typed-line"), answer && answer.line, answer && answer.here, answer ? answer.typed : undefined,
    `Where ${$("number").value} lies among the values`, (chosen) => show_code(chosen));
  if (!answer) return;
  fill_rows($("roundings"), answer.modes.map((mode) => row([
    mode.mode, ["code", make("button", { type: "button", onclick: () => show_code(mode.code) }, mode.code)], ["long", mode.value],
    mode.flags.join(", "), (mode.outcomes || []).map((o) => `${o.value}: ${o.count} of ${mode.words}`).join("; "),
  ])));
  keep();
}

function show_all() {
  const codes = file ? file.codes : facts.bits <= 8 ? ask("table", format) : null;
  $("all").hidden = !codes;
  if (codes && $("all").open)
    $("codes").replaceChildren(...codes.map((c) => make("button", { type: "button", title: `${c.code}: ${c.value}`, onclick: () => show_code(c.code) },
      `${c.code} ${c.value}`)));
}

/* Show a format, or say why not and keep the one before. */
function choose(name, asked) {
  const from_file = Object.hasOwn(SOFTNUM_DATA.tables, name) ? SOFTNUM_DATA.tables[name] : null;
  const found = from_file || ask("format", name);
  if (!found) return false;
  format = name;
  file = from_file;
  facts = from_file ? null : found;
  if (file) show_error("");
  $("format").value = [...$("format").options].some((o) => o.value === name) ? name : "";
  $("named").value = $("format").value ? "" : name;
  show_facts();
  show_all();
  show_code(asked || (file ? file.one : facts.one.code));
  show_roundings();
  return true;
}

function keep() {
  state.write({ format, code, number: $("number").value, overflow: $("overflow").value, tiny: $("tiny").value, flush: $("flush").value,
    r: $("random-bits").value, word: $("word").value });
}

function restore(kept) {
  for (const [id, key] of [["number", "number"], ["tiny", "tiny"], ["flush", "flush"], ["random-bits", "r"], ["word", "word"]])
    if (key in kept) $(id).value = kept[key];
  if (!choose(kept.format || "e4m3fn", kept.code)) {
    const said = $("error").textContent;
    choose("e4m3fn");
    show_error(said);
    return;
  }
  if (kept.overflow && [...$("overflow").options].some((o) => o.value === kept.overflow)) $("overflow").value = kept.overflow;
  show_roundings();
}

lab(() => {
  put_formats();
  $("format").addEventListener("change", () => choose($("format").value));
  $("named").addEventListener("change", () => $("named").value.trim() && choose($("named").value.trim()));
  $("code").addEventListener("change", () => show_code($("code").value.trim()));
  for (const id of ["number", "overflow", "tiny", "flush", "random-bits", "word"]) $(id).addEventListener("input", show_roundings);
  $("all").addEventListener("toggle", show_all);
  for (const kind of ["float", "fixed"])
    $(kind).addEventListener("submit", (event) => {
      event.preventDefault();
      choose(`${kind}:` + [...new FormData($(kind)).values()].join(","));
    });
  $("bits").addEventListener("keydown", (event) => {
    const step = { ArrowLeft: "previousElementSibling", ArrowRight: "nextElementSibling" }[event.key];
    const next = step && document.activeElement[step];
    if (!next || !$("bits").contains(next)) return;
    document.activeElement.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
    event.preventDefault();
  });
  fill_rows($("block-table"), SOFTNUM_DATA.blocks.map((b) => row([b.name, b.scale, b.element, ["long", b.given], ["code", b.scale_code],
    ["code long", b.codes], ["long", b.values]])));
}, restore);
