// Tables that sort, filter and are saved as CSV; plots that show values and hide lines. Without this script the page shows the same numbers.
"use strict";
const valueOf = (cell) => (cell.dataset.v ?? cell.textContent.trim());
const isNumber = (text) => text !== "" && !Number.isNaN(Number(text));

function made(tag, attributes, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...inside);
  return element;
}

function sortBy(table, column, header) {
  const down = header.getAttribute("aria-sort") === "ascending";
  const body = table.tBodies[0];
  const order = (a, b) => {
    if (a === "" || b === "") return a === b ? 0 : a === "" ? 2 : -2; // what is missing comes last, whatever the direction
    const by = isNumber(a) && isNumber(b) ? Number(a) - Number(b) : a.localeCompare(b, "en", { numeric: true });
    return (down ? -1 : 1) * Math.sign(by);
  };
  const rows = [...body.rows].map((row) => [valueOf(row.cells[column]), row]);
  rows.sort((one, other) => order(one[0], other[0]));
  body.append(...rows.map((pair) => pair[1]));
  for (const other of header.parentElement.cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
}

const shownRows = (table) => [...table.tBodies[0].rows].filter((row) => !row.hidden);

function csvOf(table) {
  // A spreadsheet takes a text that begins so for a formula.
  const safe = (text) => (/^[=+\-@\t\r]/.test(text) && !isNumber(text) ? `'${text}` : text);
  const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const head = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  const lines = [head, ...shownRows(table).map((row) => [...row.cells].map(valueOf))];
  return lines.map((line) => line.map(safe).map(quoted).join(",")).join("\r\n") + "\r\n";
}

function save(table) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csvOf(table)], { type: "text/csv" }));
  link.download = `${table.dataset.name}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Rows that have all words of the text, in any column.
function filterBy(table, text, said) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = [...table.tBodies[0].rows];
  for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
  said.textContent = words.length ? `${shownRows(table).length} of ${rows.length} rows` : "";
}

const FEWEST_FILTERED = 6;
for (const table of document.querySelectorAll("table[data-name]")) {
  [...table.tHead.rows[0].cells].forEach((header, column) => {
    const button = made("button", { type: "button" }, ...header.childNodes);
    button.addEventListener("click", () => sortBy(table, column, header));
    header.append(button);
  });
  const label = table.parentElement.getAttribute("aria-label");
  const tools = made("div", { class: "tools" });
  if (table.tBodies[0].rows.length >= FEWEST_FILTERED) {
    const field = made("input", { type: "search", placeholder: "Filter", "aria-label": `Filter: ${label}` });
    const said = made("span", { role: "status" });
    field.addEventListener("input", () => filterBy(table, field.value, said));
    tools.append(field, said);
  }
  const csv = made("button", { type: "button", class: "csv", "aria-label": `Save as CSV: ${label}` }, "Save as CSV");
  csv.addEventListener("click", () => save(table));
  tools.prepend(csv);
  table.parentElement.before(tools);
}

// All parts of a line, in all plots of a figure, whatever their width.
function showLine(figure, name, shown) {
  for (const group of figure.querySelectorAll("g[data-name]")) {
    if (group.dataset.name !== name) continue;
    group.classList.toggle("off", !shown);
    if (group.hasAttribute("aria-pressed")) group.setAttribute("aria-pressed", shown);
  }
}

function makeKeys(svg) {
  const figure = svg.closest(".drawings") ?? svg.parentElement;
  const keys = [...svg.querySelectorAll("g.key")];
  if (new Set(keys.map((key) => key.dataset.name)).size < 2) return; // one line is not hidden
  svg.setAttribute("role", "group"); // an image has no buttons
  for (const key of keys) {
    const flip = () => showLine(figure, key.dataset.name, key.classList.contains("off"));
    key.classList.add("button");
    key.addEventListener("click", flip);
    if (!key.querySelector("text")) continue;
    for (const [name, value] of [["role", "button"], ["tabindex", "0"], ["aria-pressed", "true"], ["aria-label", key.dataset.name]]) key.setAttribute(name, value);
    key.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      flip();
    });
  }
}

// The points of a line in the plot's units: the corners of its path, or else its markers.
function pointsOf(group) {
  const path = [...group.children].find((one) => one.tagName === "path");
  if (path && path.style.stroke !== "none") return [...path.getAttribute("d").matchAll(/[ML] (\S+) (\S+)/g)].map((found) => [Number(found[1]), Number(found[2])]);
  return [...group.querySelectorAll("use")].map((use) => [use.x.baseVal.value, use.y.baseVal.value]);
}

function valueAt(axis, pixel) {
  const [, log, from, to, low, high] = axis;
  const share = (pixel - from) / (to - from);
  return log ? low * (high / low) ** share : low + (high - low) * share;
}

const NEAR = 30; // pixels
const tip = made("div", { class: "tip", hidden: "" });
const ring = document.createElementNS("http://www.w3.org/2000/svg", "circle");
ring.setAttribute("class", "ring");
ring.setAttribute("r", "7");

function hideTip() {
  tip.hidden = true;
  ring.remove();
}

function pointAt(svg, event) {
  const here = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  svg.points ??= [...svg.querySelectorAll("g.line, g.cloud")].map((group) => [group, pointsOf(group)]);
  let best = { far: NEAR };
  for (const [group, points] of svg.points) {
    if (group.classList.contains("off")) continue;
    for (const [x, y] of points) {
      const far = Math.hypot(x - here.x, y - here.y);
      if (far < best.far) best = { far, x, y, name: group.dataset.name };
    }
  }
  return best.name === undefined ? null : best;
}

function showTip(svg, event) {
  const point = pointAt(svg, event);
  if (!point) return hideTip();
  const text = (value) => Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 4 });
  const values = JSON.parse(svg.dataset.axes).map((axis, which) => `${axis[0]} ${text(valueAt(axis, which ? point.y : point.x))}`);
  tip.replaceChildren(made("b", {}, point.name), ...values.map((value) => made("div", {}, value)));
  tip.hidden = false;
  const [wide, high] = [tip.offsetWidth, tip.offsetHeight];
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - wide - 8))}px`;
  tip.style.top = `${event.clientY + 18 + high > innerHeight ? event.clientY - high - 10 : event.clientY + 18}px`;
  ring.setAttribute("cx", point.x);
  ring.setAttribute("cy", point.y);
  svg.append(ring);
}

document.body.append(tip);
for (const svg of document.querySelectorAll("svg[data-axes]")) {
  makeKeys(svg);
  for (const title of svg.querySelectorAll("title")) title.remove(); // it would cover the values
  svg.addEventListener("pointermove", (event) => showTip(svg, event));
  svg.addEventListener("pointerleave", hideTip);
}
