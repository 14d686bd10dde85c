// Asks the server, and shows what it answers. Texts of the store are only ever set as text.
"use strict";
const at = (id) => document.getElementById(id);
const form = at("filters"), lists = ["sweep", "dataset", "learner", "status"];
const USUAL = ["sweep", "dataset", "order", "order_seed", "learner", "params", "status", "error", "mean_loss", "error_rate", "seconds"];
const SIZE = 50, MOST_CURVES = 20, EVERY = 2000; // rows, curves, milliseconds
const now = { stamp: null, columns: [], shown: null, axes: null, sort: null, descending: false, learners: new Map(), offset: 0, rows: [], matched: 0, chosen: [], parallel: null, curves: [] };
const many = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

function make(name, given = {}, ...inside) {
  const found = Object.assign(document.createElement(name), given);
  found.append(...inside);
  return found;
}

async function ask(what, given = new URLSearchParams()) {
  const answer = await fetch(`${what}?${given}`);
  const found = answer.status === 403 ? { error: await answer.text() } : await answer.json();
  if (found.error) throw new Error(found.error);
  return found;
}

function say(error) {
  at("error").hidden = !error;
  at("error").textContent = error ? error.message : "";
}

const numberOf = (learner) => now.learners.get(learner);
const swatch = (learner) => markOf(numberOf(learner) ?? 0);
const filters = () => new URLSearchParams([...new FormData(form)].filter(([, value]) => value));

// A checkbox for each name; the checked ones are given to `changed`, in the order of the names.
function boxes(place, names, checked, changed, meaning = () => "") {
  place.replaceChildren(...names.map((name) => {
    const box = make("input", { type: "checkbox", value: name, checked: checked.includes(name) });
    box.addEventListener("change", () => changed([...place.querySelectorAll("input:checked")].map((one) => one.value)));
    return make("label", { title: meaning(name) }, box, name);
  }));
}

async function overview() {
  const found = await ask("overview");
  now.stamp = found.stamp;
  at("store").textContent = found.store;
  at("nothing").hidden = found.runs > 0;
  at("results").hidden = found.runs === 0;
  now.all = found.runs;
  for (const name of lists) {
    const list = form.elements[name], picked = new Set([...list.selectedOptions].map((one) => one.value));
    list.replaceChildren(...found.lists[name].map(([value, n]) => make("option", { value, selected: picked.has(value), textContent: `${value} (${n.toLocaleString("en")})` })));
  }
  now.columns = found.columns;
  now.learners = new Map(found.lists.learner.map(([name], k) => [name, k]));
  now.sort ??= ["error_rate", "mean_loss", "finished_at"].find((name) => found.columns.some((one) => one.name === name)) ?? null;
  now.shown ??= USUAL.filter((name) => found.columns.some((one) => one.name === name));
  if (!found.runs) now.shown = null;
  const meaning = (name) => found.columns.find((one) => one.name === name)?.meaning ?? "";
  boxes(at("columns"), found.columns.map((one) => one.name), now.shown ?? [], (names) => { now.shown = names; run(table); }, meaning);
}

async function table() {
  const given = filters();
  (now.shown ?? []).forEach((name) => given.append("column", name));
  given.set("sort", now.sort ?? "run_id");
  given.set("descending", now.descending ? "yes" : "no");
  given.set("offset", now.offset);
  given.set("limit", SIZE);
  const found = await ask("runs", given);
  if (now.offset && now.offset >= found.matched) { now.offset = 0; return table(); }
  now.rows = found.rows;
  now.matched = found.matched;
  at("state").textContent = now.all ? `${found.matched.toLocaleString("en")} of ${many(now.all, "run")} shown; new ones appear by themselves.` : "";
  const last = Math.min(now.offset + SIZE, found.matched);
  at("range").textContent = found.matched ? `${(now.offset + 1).toLocaleString("en")} to ${last.toLocaleString("en")} of ${found.matched.toLocaleString("en")}` : "No run meets the filters.";
  at("before").disabled = now.offset === 0;
  at("after").disabled = last >= found.matched;
  const focused = document.activeElement?.dataset?.key;
  head();
  at("runs").tBodies[0].replaceChildren(...found.rows.map(line));
  if (focused) document.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

function head() {
  const numbers = new Set(now.columns.filter((one) => one.number).map((one) => one.name));
  at("runs").tHead.rows[0].replaceChildren(make("th", { scope: "col", textContent: "curve" }), ...(now.shown ?? []).map((name) => {
    const button = make("button", { type: "button", textContent: name });
    button.dataset.key = `sort ${name}`;
    button.addEventListener("click", () => { now.descending = now.sort === name && !now.descending; now.sort = name; now.offset = 0; run(table); });
    const cell = make("th", { scope: "col", className: numbers.has(name) ? "n" : "" }, button);
    if (now.sort === name) cell.setAttribute("aria-sort", now.descending ? "descending" : "ascending");
    return cell;
  }));
}

// Parameters without those that are the same in all runs shown.
function briefly(params) {
  try {
    const fixed = new Set(now.columns.map((one) => one.name).filter((name) => !now.parallel.varying.includes(name)));
    return Object.entries(JSON.parse(params)).filter(([name]) => !fixed.has(name)).map(([name, value]) => `${name}=${short(value)}`).join(", ");
  } catch { return params; }
}

function line([id, ...values]) {
  const box = make("input", { type: "checkbox", checked: now.chosen.includes(id), ariaLabel: `Curve of run ${id.slice(0, 12)}` });
  box.dataset.key = id;
  box.addEventListener("change", () => choose(id));
  const row = make("tr", { className: box.checked ? "chosen" : "" }, make("td", {}, box), ...values.map((value, k) => {
    const text = value === null ? "" : now.shown[k] === "params" ? briefly(value) : short(value);
    return make("td", { className: typeof value === "number" ? "n" : text.length > 24 ? "long" : "", title: value ?? "", textContent: text });
  }));
  row.addEventListener("click", (event) => { if (event.target !== box && !getSelection().toString()) choose(id); });
  return row;
}

async function parallel() {
  const given = filters();
  given.set("colour", at("colour").value);
  (now.axes ?? []).forEach((name) => given.append("axis", name));
  now.parallel = await ask("parallel", given);
  boxes(at("axes"), [...new Set([...now.parallel.varying, ...now.columns.map((one) => one.name)])], now.parallel.axes, (names) => { now.axes = names.length ? names : null; run(parallel); });
  await drawn();
}

async function drawn() {
  const { axes, lines, matched, varying } = now.parallel;
  const some = lines.length < matched ? `${lines.length.toLocaleString("en")} of ${many(matched, "run")}, always the same ones (a sample by run_id).` : `${many(matched, "run")}.`;
  at("parallel").hidden = at("key").hidden = !lines.length || !axes.length;
  if (at("parallel").hidden) {
    at("parallel-note").textContent = lines.length && !varying.length ? "No parameter or result differs among these runs; choose axes." : some;
    return;
  }
  const numeric = new Set(now.columns.filter((one) => one.number).map((one) => one.name));
  const byLearner = at("colour").value === "learner" ? numberOf : () => undefined;
  const [done, colours] = drawParallel(at("parallel"), axes, numeric, lines, byLearner, choose, brush);
  at("key").replaceChildren(...colours.map(([name, k]) => make("li", {}, markOf(k), String(name ?? "none"))));
  at("parallel-note").textContent = `${some} A click shows a run's curve; drag over an axis to filter by it.`;
  await done;
}

let dragged = [];
function brush(name, range, values) {
  if (name) { dragged.push([name, range, values]); return; }
  for (const [column, between, texts] of dragged) {
    const whole = now.columns.find((one) => one.name === column);
    if (between) condition([[">=", between[0]], ["<=", between[1]]].filter(([, end]) => Number.isFinite(end)).map(([sign, end]) => `${column}${sign}${Number(end.toPrecision(6))}`).join(" and "));
    else if (lists.includes(column)) for (const option of form.elements[column].options) option.selected = texts.includes(option.value);
    else if (texts.length === 1) condition(`${column}=${texts[0]}`);
    else if (whole) at("parallel-note").textContent = `Of ${column}, drag over one value.`;
  }
  const any = dragged.some(([, between, texts]) => between || texts.length);
  dragged = [];
  if (any) refilter();
}

function condition(text) {
  form.elements.where.value = [form.elements.where.value.trim(), text].filter(Boolean).join(" and ");
}

function choose(id) {
  now.chosen = now.chosen.includes(id) ? now.chosen.filter((one) => one !== id) : [...now.chosen, id].slice(-MOST_CURVES);
  return run(curves);
}

async function curves() {
  for (const row of at("runs").tBodies[0].rows) {
    const box = row.querySelector("input");
    box.checked = now.chosen.includes(box.dataset.key);
    row.className = box.checked ? "chosen" : "";
  }
  const found = now.chosen.length ? (await ask("curves", new URLSearchParams(now.chosen.map((id) => ["run", id])))).runs : [];
  const there = new Map(found.map((one) => [one.run_id, one]));
  now.chosen = now.chosen.filter((id) => there.has(id));
  now.curves = now.chosen.map((id) => there.get(id));
  for (const one of now.curves) one.words = [one.dataset, one.order_seed === null ? "" : `order ${one.order_seed}`, one.learner, briefly(one.params), one.learner_seed === null ? "" : `seed ${one.learner_seed}`].filter(Boolean).join(", ");
  await lines();
}

async function lines() {
  const list = at("measure"), any = now.curves.some((one) => one.points.some((point) => Number.isFinite(MEASURES[list.value](point))));
  at("curves").hidden = !any;
  at("curves-note").textContent = !now.curves.length ? `Choose runs in the table or the plot above, at most ${MOST_CURVES}.` : any ? many(now.curves.length, "run") + "." : "These runs have no such curve.";
  const strokes = strokesOf(now.curves, numberOf);
  at("legend").replaceChildren(...now.curves.map((one, k) => {
    const off = make("button", { type: "button", textContent: "remove", ariaLabel: `Remove the curve of ${one.words}` });
    off.addEventListener("click", () => choose(one.run_id));
    const mark = markOf(strokes[k].k, DASHED[strokes[k].dash]);
    return make("li", {}, mark, one.words, off);
  }));
  if (any) await drawCurves(at("curves"), now.curves, strokes, list.value, list.selectedOptions[0].textContent);
}

async function run(...work) {
  try {
    for (const one of work) await one();
    say(null);
  } catch (error) { say(error); }
}
const refilter = () => { now.offset = 0; return run(summary, parallel, table); };
const everything = () => run(overview, summary, parallel, table, curves);

form.addEventListener("submit", (event) => { event.preventDefault(); refilter(); });
form.addEventListener("change", refilter);
form.addEventListener("reset", () => setTimeout(refilter));
at("before").addEventListener("click", () => { now.offset = Math.max(0, now.offset - SIZE); run(table); });
at("after").addEventListener("click", () => { now.offset += SIZE; run(table); });
at("first").addEventListener("click", () => { now.chosen = now.rows.slice(0, 10).map((row) => row[0]); run(curves); });
at("none").addEventListener("click", () => { now.chosen = []; run(curves); });
at("colour").addEventListener("change", () => run(parallel));
at("measure").addEventListener("change", () => run(lines));
const redraw = () => { if (now.parallel && now.all) run(drawn, lines); };
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
let waiting;
addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(redraw, 150); });

async function follow() {
  try {
    if (!document.hidden && (await ask("stamp")).stamp !== now.stamp) await everything();
  } catch { at("state").textContent = "koco explore does not answer any more."; }
  setTimeout(follow, EVERY);
}
everything().then(follow);
