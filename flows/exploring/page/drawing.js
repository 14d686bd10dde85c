// The two plots: parallel coordinates and curves. Plotly reads its texts as markup, so they are escaped.
"use strict";
const COLOURS = ["--blue", "--vermilion", "--green", "--purple", "--orange", "--sky"];
const DASHES = ["solid", "dash", "dot", "dashdot"];
const NONE = -0.08; // where an axis has runs without a value
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const escaped = (value) => String(value).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const brief = (text, most = 22) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const short = (value) => (typeof value === "number" && !Number.isInteger(value) ? String(Number(value.toPrecision(4))) : String(value));
const SETTINGS = { displayModeBar: false, responsive: false, doubleClick: false };

function layout(more) {
  const line = { color: css("--ink"), gridcolor: css("--line"), zeroline: false };
  const { xaxis, yaxis, ...rest } = more;
  return {
    paper_bgcolor: css("--page"), plot_bgcolor: css("--page"), font: { color: css("--ink"), size: 13, family: "system-ui, sans-serif" },
    showlegend: false, hovermode: "closest", hoverlabel: { bgcolor: css("--soft"), font: { color: css("--ink") } },
    xaxis: { ...line, ...xaxis }, yaxis: { ...line, ...yaxis }, ...rest,
  };
}

// A column's axis: its values to heights in [0, 1] and back, and ticks [height, text].
function axisOf(values) {
  const there = values.filter((value) => value !== null);
  const numbers = there.filter((value) => typeof value === "number");
  if (there.length === numbers.length && there.length) {
    const low = numbers.reduce((a, b) => Math.min(a, b)), high = numbers.reduce((a, b) => Math.max(a, b));
    const log = low > 0 && high / low >= 100;
    const to = log ? Math.log10 : (value) => value, from = log ? (value) => 10 ** value : (value) => value;
    const span = to(high) - to(low) || 1;
    const value = (height) => from(to(low) + Math.min(Math.max(height, 0), 1) * span);
    const ticks = low === high ? [0] : [0, 0.25, 0.5, 0.75, 1];
    return { number: true, height: (one) => (to(one) - to(low)) / span, value, ticks: ticks.map((at) => [at, String(Number(value(at).toPrecision(3)))]) };
  }
  const texts = [...new Set(there.map(String))].sort();
  const at = new Map(texts.map((text, k) => [text, texts.length > 1 ? k / (texts.length - 1) : 0.5]));
  const every = Math.ceil(texts.length / 12);
  return { number: false, height: (one) => at.get(String(one)), at, ticks: texts.filter((_, k) => k % every === 0).map((text) => [at.get(text), text]) };
}

// Draws lines [run_id, colour, value of each axis …]; returns the names of the colours, in their order.
function drawParallel(place, names, lines, pick, brush) {
  const axes = names.map((_, k) => axisOf(lines.map((line) => line[k + 2])));
  const groups = Map.groupBy ? Map.groupBy(lines, (line) => line[1]) : lines.reduce((all, line) => all.set(line[1], [...(all.get(line[1]) ?? []), line]), new Map());
  const ordered = [...groups].sort((a, b) => String(a[0]).localeCompare(String(b[0]), "en"));
  const traces = ordered.map(([name, some], k) => {
    const x = [], y = [], text = [], ids = [];
    for (const [id, , ...values] of some) {
      values.forEach((value, j) => {
        x.push(j); y.push(value === null ? NONE : axes[j].height(value)); ids.push(id);
        text.push(`${escaped(name)}<br>${escaped(names[j])}: ${escaped(value === null ? "none" : brief(short(value), 60))}`);
      });
      x.push(null); y.push(null); ids.push(null); text.push(null);
    }
    const colour = css(COLOURS[k] ?? "--grey");
    return { x, y, text, customdata: ids, name: escaped(name), hoverinfo: "text", mode: "lines+markers", type: "scatter", marker: { size: 4, color: colour }, opacity: lines.length > 300 ? 0.5 : 0.8, line: { color: colour, width: lines.length > 300 ? 0.5 : 1 }, selected: { marker: { opacity: 1 } }, unselected: { marker: { opacity: 1 } } };
  });
  const missing = names.map((_, k) => lines.some((line) => line[k + 2] === null));
  const words = names.flatMap((name, k) => [
    { x: k, y: 1.07, text: `<b>${escaped(brief(name, 18))}</b>`, xanchor: k ? (k < names.length - 1 ? "center" : "right") : "left" },
    ...[...axes[k].ticks, ...(missing[k] ? [[NONE, "none"]] : [])].map(([at, text]) => ({ x: k, y: at, text: escaped(brief(text, 14)), xanchor: k < names.length - 1 ? "left" : "right", xshift: k < names.length - 1 ? 5 : -5, font: { size: 12 }, bgcolor: css("--page"), opacity: 0.85, borderpad: 0 })),
  ]).map((word) => ({ showarrow: false, ...word }));
  const width = Math.max(place.parentElement.clientWidth - 4, names.length * 105);
  const drawn = Plotly.react(place, traces, layout({
    width, height: 420, margin: { l: 12, r: 12, t: 12, b: 12 }, annotations: words,
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "select",
    shapes: names.map((_, k) => ({ type: "line", x0: k, x1: k, y0: 0, y1: 1, line: { color: css("--quiet"), width: 1 } })),
    xaxis: { visible: false, range: [-0.03 * names.length, names.length - 1 + 0.03 * names.length], fixedrange: true },
    yaxis: { visible: false, range: [NONE - 0.05, 1.12], fixedrange: true },
  }), SETTINGS);
  place.removeAllListeners?.("plotly_click");
  place.removeAllListeners?.("plotly_selected");
  place.on("plotly_click", (event) => pick(event.points[0].customdata));
  place.on("plotly_selected", (event) => {
    if (!event?.range) return;
    const [left, right] = event.range.x, [low, high] = [...event.range.y].sort((a, b) => a - b);
    names.forEach((name, k) => {
      if (k < left || k > right) return;
      const { number, value, at } = axes[k];
      if (number) brush(name, [value(low), value(high)], null);
      else brush(name, null, [...at].filter(([, height]) => low <= height && height <= high).map(([text]) => text));
    });
    brush(null);
  });
  return [drawn, ordered.map(([name]) => name)];
}

const strokeOf = (k) => ({ color: css(COLOURS[k % COLOURS.length]), dash: DASHES[Math.floor(k / COLOURS.length) % DASHES.length], width: 2 });
const MEASURES = {
  loss: (point) => point.cumulative_loss / point.t,
  error: (point) => (point.mistakes === null ? null : point.mistakes / point.t),
  size: (point) => point.dictionary_size,
};

function drawCurves(place, runs, measure, title) {
  const traces = runs.map((run, k) => ({
    x: run.points.map((point) => point.t), y: run.points.map((point) => { const value = MEASURES[measure](point); return Number.isFinite(value) ? value : null; }),
    name: escaped(brief(run.words, 60)), mode: "lines", type: "scatter", line: strokeOf(k), hovertemplate: "%{y:.5g} at t = %{x}<extra>%{fullData.name}</extra>",
  }));
  return Plotly.react(place, traces, layout({
    width: Math.max(place.parentElement.clientWidth - 4, 300), height: 380, margin: { l: 60, r: 12, t: 12, b: 45 }, dragmode: false,
    xaxis: { type: "log", title: { text: "t, rounds" }, dtick: 1, fixedrange: true }, yaxis: { title: { text: title }, fixedrange: true, rangemode: "normal" },
  }), SETTINGS);
}
