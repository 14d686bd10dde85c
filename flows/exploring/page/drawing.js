// The two plots: parallel coordinates and curves. Plotly reads its texts as markup, so they are escaped.
"use strict";
const COLOURS = ["--blue", "--vermilion", "--green", "--purple", "--orange", "--sky"];
const DASHES = ["solid", "dash", "dot", "dashdot"];
const SYMBOLS = [["circle", "M16 6 m-4 0 a4 4 0 1 0 8 0 a4 4 0 1 0 -8 0"], ["square", "M12.5 2.5 h7 v7 h-7 z"], ["diamond", "M16 1 L21 6 L16 11 L11 6 z"], ["triangle-up", "M16 1 L21 10 H11 z"], ["x", "M12 1 l4 3.5 l4 -3.5 l1.5 1.5 l-3.5 3.5 l3.5 3.5 l-1.5 1.5 l-4 -3.5 l-4 3.5 l-1.5 -1.5 l3.5 -3.5 l-3.5 -3.5 z"]];
const NONE = -0.08, OVER = 1.07; // where an axis has runs without a value, and those beyond its end
const FAR = 100, FAR_LOG = 1e6; // times the value below which most are: what is larger is beyond the end
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

// Colour and symbol by number: 30 are distinct.
const lookOf = (k) => ({ color: css(COLOURS[k % COLOURS.length]), symbol: SYMBOLS[Math.floor(k / COLOURS.length) % SYMBOLS.length] });

function svg(name, given) {
  const found = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(given)) found.setAttribute(key, value);
  return found;
}

// A short line with a symbol on it, in the colour that CSS has, so that it follows the scheme.
function markOf(k, dash = "none") {
  const colour = `var(${COLOURS[k % COLOURS.length]})`, found = svg("svg", { viewBox: "0 0 32 12", "aria-hidden": "true" });
  found.append(svg("path", { d: "M0 6 H32", stroke: colour, "stroke-width": 2, "stroke-dasharray": dash }), svg("path", { d: SYMBOLS[Math.floor(k / COLOURS.length) % SYMBOLS.length][1], fill: colour }));
  return found;
}

// The end of an axis of numbers: the largest, unless a few are so much larger that all others would be one point.
function endOf(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b), most = sorted[Math.floor(0.9 * (sorted.length - 1))];
  const limit = most * (sorted[0] > 0 ? FAR_LOG : FAR);
  return sorted[0] >= 0 && most > 0 && sorted.at(-1) > limit ? sorted.findLast((one) => one <= limit) : sorted.at(-1);
}

// A column's axis: its values to heights in [0, 1] and back, and ticks [height, text]. Numbers beyond its end, and infinite ones, which are texts here, are above it.
function axisOf(values, isNumber) {
  const there = values.filter((value) => value !== null);
  const numbers = there.filter((value) => typeof value === "number");
  if (numbers.length && (isNumber || there.length === numbers.length)) {
    const low = numbers.reduce((a, b) => Math.min(a, b)), high = endOf(numbers);
    const log = low > 0 && high / low >= 100;
    const to = log ? Math.log10 : (value) => value, from = log ? (value) => 10 ** value : (value) => value;
    const span = to(high) - to(low) || 1;
    const value = (height) => (height > 1.03 ? Infinity : from(to(low) + Math.min(Math.max(height, 0), 1) * span));
    const height = (one) => (typeof one === "number" ? (one > high ? OVER : (to(one) - to(low)) / span) : one === "inf" ? OVER : NONE);
    const ticks = low === high ? [0] : [0, 0.25, 0.5, 0.75, 1];
    const text = (one) => String(Number(one.toPrecision(3)));
    const beyond = there.some((one) => height(one) === OVER) ? [[OVER, `> ${text(high)}`]] : [];
    return { number: true, height, value, ticks: [...ticks.map((at) => [at, text(value(at))]), ...beyond], end: high };
  }
  const texts = [...new Set(there.map(String))].sort();
  const at = new Map(texts.map((text, k) => [text, texts.length > 1 ? k / (texts.length - 1) : 0.5]));
  const every = Math.ceil(texts.length / 12);
  return { number: false, height: (one) => at.get(String(one)), at, ticks: texts.filter((_, k) => k % every === 0).map((text) => [at.get(text), text]) };
}

// Draws lines [run_id, colour, value of each axis …]; returns the names of the colours and their numbers, which `numberOf` gives or their order.
function drawParallel(place, names, numeric, lines, numberOf, pick, brush) {
  const axes = names.map((name, k) => axisOf(lines.map((line) => line[k + 2]), numeric.has(name)));
  const groups = Map.groupBy ? Map.groupBy(lines, (line) => line[1]) : lines.reduce((all, line) => all.set(line[1], [...(all.get(line[1]) ?? []), line]), new Map());
  const ordered = [...groups].sort((a, b) => String(a[0]).localeCompare(String(b[0]), "en"));
  const numbered = ordered.map(([name], k) => [name, numberOf(name) ?? k]);
  const traces = ordered.map(([name, some], number) => {
    const x = [], y = [], text = [], ids = [];
    for (const [id, , ...values] of some) {
      values.forEach((value, j) => {
        x.push(j); y.push(value === null ? NONE : axes[j].height(value)); ids.push(id);
        text.push(`${escaped(name)}<br>${escaped(names[j])}: ${escaped(value === null ? "none" : brief(short(value), 60))}`);
      });
      x.push(null); y.push(null); ids.push(null); text.push(null);
    }
    const { color: colour, symbol } = lookOf(numbered[number][1]);
    return { x, y, text, customdata: ids, name: escaped(name), hoverinfo: "text", mode: "lines+markers", type: "scatter", marker: { size: 5, color: colour, symbol: symbol[0] }, opacity: lines.length > 300 ? 0.5 : 0.8, line: { color: colour, width: lines.length > 300 ? 0.5 : 1 }, selected: { marker: { opacity: 1 } }, unselected: { marker: { opacity: 1 } } };
  });
  const missing = names.map((_, k) => lines.some((line) => line[k + 2] === null));
  const words = names.flatMap((name, k) => [
    { x: k, y: 1.16, text: `<b>${escaped(brief(name, 18))}</b>`, xanchor: k ? (k < names.length - 1 ? "center" : "right") : "left" },
    ...[...axes[k].ticks, ...(missing[k] ? [[NONE, "none"]] : [])].map(([at, text]) => ({ x: k, y: at, text: escaped(brief(text, 14)), xanchor: k < names.length - 1 ? "left" : "right", xshift: k < names.length - 1 ? 5 : -5, font: { size: 12 }, bgcolor: css("--page"), opacity: 0.85, borderpad: 0 })),
  ]).map((word) => ({ showarrow: false, ...word }));
  const width = Math.max(place.parentElement.clientWidth - 4, names.length * 105);
  const drawn = Plotly.react(place, traces, layout({
    width, height: 440, margin: { l: 12, r: 12, t: 12, b: 12 }, annotations: words,
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "select",
    shapes: names.map((_, k) => ({ type: "line", x0: k, x1: k, y0: 0, y1: 1, line: { color: css("--quiet"), width: 1 } })),
    xaxis: { visible: false, range: [-0.03 * names.length, names.length - 1 + 0.03 * names.length], fixedrange: true },
    yaxis: { visible: false, range: [NONE - 0.05, 1.21], fixedrange: true },
  }), SETTINGS);
  place.removeAllListeners?.("plotly_click");
  place.removeAllListeners?.("plotly_selected");
  place.on("plotly_click", (event) => pick(event.points[0].customdata));
  place.on("plotly_selected", (event) => {
    if (!event?.range) return;
    const [left, right] = event.range.x, [low, high] = [...event.range.y].sort((a, b) => a - b);
    names.forEach((name, k) => {
      if (k < left || k > right) return;
      const { number, value, at, end } = axes[k];
      if (number) brush(name, [Math.min(value(low), end), value(high)], null);
      else brush(name, null, [...at].filter(([, height]) => low <= height && height <= high).map(([text]) => text));
    });
    brush(null);
  });
  return [drawn, numbered];
}

// A curve has the look of its learner, and a dash of its own among the curves of that.
const DASHED = { solid: "none", dash: "7 4", dot: "2 3", dashdot: "7 3 2 3" };
function strokesOf(runs, numberOf) {
  const seen = new Map();
  return runs.map(({ learner }) => {
    const n = seen.get(learner) ?? 0, k = numberOf(learner) ?? 0;
    seen.set(learner, n + 1);
    return { k, dash: DASHES[n % DASHES.length], width: 2 + Math.floor(n / DASHES.length) };
  });
}
const MEASURES = {
  loss: (point) => point.cumulative_loss / point.t,
  error: (point) => (point.mistakes === null ? null : point.mistakes / point.t),
  size: (point) => point.dictionary_size,
};

function drawCurves(place, runs, strokes, measure, title) {
  const traces = runs.map((run, k) => ({
    x: run.points.map((point) => point.t), y: run.points.map((point) => { const value = MEASURES[measure](point); return Number.isFinite(value) ? value : null; }),
    name: escaped(brief(run.words, 60)), mode: "lines+markers", type: "scatter", line: { color: lookOf(strokes[k].k).color, dash: strokes[k].dash, width: strokes[k].width }, marker: { symbol: lookOf(strokes[k].k).symbol[0], size: 7, maxdisplayed: 8 }, hovertemplate: "%{y:.5g} at t = %{x}<extra>%{fullData.name}</extra>",
  }));
  return Plotly.react(place, traces, layout({
    width: Math.max(place.parentElement.clientWidth - 4, 300), height: 380, margin: { l: 60, r: 12, t: 12, b: 45 }, dragmode: false,
    xaxis: { type: "log", title: { text: "t, rounds" }, dtick: 1, fixedrange: true }, yaxis: { title: { text: title }, fixedrange: true, rangemode: "normal" },
  }), SETTINGS);
}
