"use strict";
// Draws every figure from the page's own data, and draws again when the reader changes a control or the theme.
const parts = JSON.parse(document.getElementById("data").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function look() {
  const text = dark.matches ? "#e6e7e8" : "#1d1f21";
  const line = dark.matches ? "#3a3e42" : "#d9dbdd";
  const axis = { labelColor: text, titleColor: text, gridColor: line, domainColor: line, tickColor: line };
  return {
    background: "transparent",
    font: 'system-ui, "DejaVu Sans", sans-serif',
    view: { stroke: line },
    axis,
    legend: { labelColor: text, titleColor: text },
    style: { "guide-label": { fontSize: 11 }, "guide-title": { fontSize: 12, fontWeight: "normal" } },
  };
}

function save(name, url) {
  const link = document.createElement("a");
  link.download = name;
  link.href = url;
  link.click();
}

function csvOf(figure) {
  const quoted = (value) => (/[",\r\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : value);
  return [figure.columns, ...figure.records].map((record) => record.map(quoted).join(",") + "\n").join("");
}

// A panel is of one kind of labels, which may not have been measured on the images that are chosen.
function mark(section, figure) {
  const place = Object.fromEntries(figure.columns.map((name, index) => [name, index]));
  const picked = Object.keys(figure.start).filter((name) => name !== "epoch");
  for (const panel of section.querySelectorAll("figure[data-labels]")) {
    const { labels } = panel.dataset;
    const there = figure.records.some(
      (record) =>
        (!labels || record[place.labels] === labels) &&
        picked.every((name) => record[place[name]] === section.chosen[name])
    );
    panel.classList.toggle("nothing", !there);
    const words = [section.querySelector("h3").textContent, labels, ...Object.values(section.chosen)];
    panel.querySelector(".chart").setAttribute("aria-label", words.filter(Boolean).join(", "));
  }
}

async function draw(section) {
  const figure = parts[section.dataset.part][section.dataset.figure];
  const chosen = (section.chosen = { ...figure.start, ...section.chosen });
  const values = () =>
    figure.records.map((record) => Object.fromEntries(record.map((value, i) => [figure.columns[i], value])));
  for (const view of section.views || []) view.finalize();
  mark(section, figure);
  const places = [...section.querySelectorAll(".chart")];
  section.views = await Promise.all(
    places.map(async (place, index) => {
      const spec = { ...figure.panels[index], datasets: { records: values() } };
      const options = { actions: false, renderer: "svg", ast: true, config: look(), tooltip: true };
      const { view } = await vegaEmbed(place, spec, options);
      for (const [name, value] of Object.entries(chosen)) view.signal(name, value);
      return view.runAsync();
    })
  );
  mark(section, figure); // again: Vega calls every chart "Vega visualization"
  section.dataset.drawn = "yes";
}

function listen(section) {
  const figure = parts[section.dataset.part][section.dataset.figure];
  section.addEventListener("input", async ({ target }) => {
    if (!(target.name in figure.start)) return;
    const value = figure.values[target.name][Number(target.value)];
    section.chosen = { ...figure.start, ...section.chosen, [target.name]: value };
    if (target.nextElementSibling) target.nextElementSibling.value = value;
    if (target.type === "range") target.setAttribute("aria-valuetext", value);
    mark(section, figure);
    if (!section.views) return; // still being drawn, with what is chosen now
    await Promise.all(section.views.map((view) => view.signal(target.name, value).runAsync()));
  });
  section.addEventListener("click", async ({ target }) => {
    const kind = target.dataset.save;
    if (!kind) return;
    if (kind === "csv") {
      const url = URL.createObjectURL(new Blob([csvOf(figure)], { type: "text/csv" }));
      save(`${figure.name}.csv`, url);
      setTimeout(() => URL.revokeObjectURL(url), 1000);
      return;
    }
    const index = [...section.querySelectorAll("figure")].indexOf(target.closest("figure"));
    const view = section.views?.[index];
    if (!view) return;
    const back = view.background();
    view.background(dark.matches ? "#17191b" : "#ffffff");
    const url = await view.toImageURL(kind, kind === "png" ? 2 : 1);
    view.background(back);
    save(`${figure.name}${index ? `-${index + 1}` : ""}.${kind}`, url);
  });
}

const sections = [...document.querySelectorAll(".figure")];
sections.forEach(listen);
const drawAll = () => Promise.all(sections.map(draw)).then(() => (document.body.dataset.drawn = "yes"));
dark.addEventListener("change", drawAll);
drawAll();
