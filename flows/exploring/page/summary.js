// The first screen: which learner is best on each dataset and in each sweep, whether that is sure, and what it cost.
"use strict";

function named(learner, ...more) {
  return [make("strong", { className: "learner" }, swatch(learner), learner), ...more.filter(Boolean).map((text) => make("small", { textContent: text }))];
}

function summaryRow(row) {
  return make("tr", {},
    make("th", { scope: "row" }, soften(row.title), make("small", { textContent: row.about })),
    make("td", {}, ...(row.best ? named(row.best.learner, row.best.measure, row.best.cost) : ["–"])),
    make("td", {}, ...(row.second ? named(row.second.learner, row.second.measure) : []), make("small", { className: row.verdict.startsWith("Real") ? "yes" : "", textContent: row.verdict })));
}

// A long name may break after a comma or an underscore.
function soften(text) {
  return make("span", {}, ...text.split(/(?<=[,_:-])/).flatMap((part) => [part, make("wbr")]));
}

function bodies(table, rows) {
  const groups = [...new Set(rows.map((row) => row.group))];
  table.querySelectorAll("tbody").forEach((one) => one.remove());
  for (const group of groups) {
    const title = group ? [make("tr", { className: "group" }, make("th", { colSpan: 3, scope: "rowgroup", textContent: group }))] : [];
    table.append(make("tbody", {}, ...title, ...rows.filter((row) => row.group === group).map(summaryRow)));
  }
}

async function summary() {
  const found = await ask("summary", filters());
  at("summary").hidden = !found.datasets.length && !found.sweeps.length;
  bodies(at("best-datasets"), found.datasets);
  bodies(at("best-sweeps"), found.sweeps);
  at("cost").textContent = found.seconds === null ? "" : `All of them took ${Math.round(found.seconds).toLocaleString("en")} s of computing.`;
}
