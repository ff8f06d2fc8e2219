"use strict";
// Draws the charts of the report, and redraws them as designs, choices and the colour scheme change.
(() => {
  const report = JSON.parse(document.getElementById("report").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const boxes = [...document.querySelectorAll("#designs input")];
  const selects = [...document.querySelectorAll("select[data-chart]")];
  const drawn = new Map(); // name of a chart -> what vegaEmbed returned
  const root = document.documentElement;
  let busy = 0;

  const checked = () => boxes.filter((box) => box.checked).map((box) => box.value);
  // charts of nothing are hidden, not drawn: they would have axes without ends
  const shown = () => (checked().length ? checked() : report.designs);

  // what tests wait for: "busy" while anything is drawn, then "drawn" or "failed"
  async function work(action) {
    busy += 1;
    if (root.dataset.state !== "failed") root.dataset.state = "busy";
    try {
      await action();
    } catch (error) {
      root.dataset.state = "failed";
      console.error(error);
    }
    busy -= 1;
    if (busy === 0 && root.dataset.state !== "failed") root.dataset.state = "drawn";
  }

  // the value at a JSON pointer, replaced
  function put(spec, pointer, value) {
    const keys = pointer.split("/").slice(1).map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
    const last = keys.pop();
    const place = keys.reduce((node, key) => node[key], spec);
    if (value === null) delete place[last];
    else place[last] = value;
  }

  function specification(name) {
    const spec = structuredClone(report.charts[name].spec);
    for (const select of selects) {
      if (select.dataset.chart !== name) continue;
      const control = report.charts[name].controls[select.dataset.control];
      for (const [pointer, value] of control[Number(select.value)]) put(spec, pointer, value);
    }
    spec.params.find((parameter) => parameter.name === "shown").value = shown();
    if (step(spec)) spec.height = step(spec) * shown().length;
    return spec;
  }

  // the height of one design, in charts that have a line for each
  const step = (spec) => spec.usermeta?.step;

  const queue = new Map(); // name of a chart -> the drawing that is under way
  function draw(name) {
    const next = (queue.get(name) ?? Promise.resolve()).then(async () => {
      drawn.get(name)?.finalize();
      const place = document.querySelector(`[data-draw="${name}"]`);
      drawn.set(name, await window.vegaEmbed(place, specification(name), {
        renderer: "svg",
        actions: { export: true, source: false, compiled: false, editor: false },
        downloadFileName: name,
        config: report.themes[dark.matches ? "dark" : "light"],
        tooltip: { theme: dark.matches ? "dark" : "light" },
        logLevel: 1, // errors; that the chart of a hidden design has no extent is none
        ast: true, // expressions are interpreted: the page's policy allows no eval
      }));
    });
    queue.set(name, next.catch(() => {}));
    return next;
  }

  const drawAll = () => work(() => Promise.all(Object.keys(report.charts).map(draw)));

  function toggle() {
    root.classList.toggle("none", checked().length === 0);
    const names = new Set(checked());
    for (const row of document.querySelectorAll("tr[data-design]")) row.hidden = !names.has(row.dataset.design);
    if (names.size === 0) return Promise.resolve();
    return work(async () => {
      for (const [name, { view }] of drawn) {
        const each = step(report.charts[name].spec);
        if (each) view.height(each * names.size);
        await view.signal("shown", [...names]).resize().runAsync();
      }
    });
  }

  for (const box of boxes) box.addEventListener("change", toggle);
  document.getElementById("every-design")?.addEventListener("click", () => {
    for (const box of boxes) box.checked = true;
    toggle();
  });
  for (const select of selects) {
    select.addEventListener("change", () => work(() => draw(select.dataset.chart)));
  }
  dark.addEventListener("change", drawAll);
  drawAll();
})();
