// Tables that sort, filter and are saved as CSV; charts, which the library draws.
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
function equip(table) {
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
for (const table of document.querySelectorAll("table[data-name]")) equip(table);

// Charts: the library draws them when they are seen first; their numbers are a table for those who ask.
async function draw(chart) {
  const [spec, columns, rows] = JSON.parse(chart.nextElementSibling.textContent);
  chart.replaceChildren();
  const datasets = { rows: rows.map((row) => Object.fromEntries(row.map((value, k) => [`c${k}`, value]))) };
  spec.config.legend.columns = Math.max(1, Math.floor((chart.clientWidth - 80) / spec.usermeta.name));
  const numbers = made("details", {}, made("summary", {}, `The numbers: ${chart.dataset.title}`));
  numbers.addEventListener("toggle", () => numbers.append(tableOf(chart.dataset.title, columns, rows)), { once: true });
  chart.after(numbers);
  await vegaEmbed(chart, { ...spec, datasets }, { actions: false, ast: true, renderer: "svg", tooltip: { theme: "custom" } });
}

function tableOf(label, columns, rows) {
  const text = (value) => (typeof value === "number" ? String(value) : value ?? "–");
  const head = made("tr", {}, ...columns.map((name) => made("th", { scope: "col" }, name)));
  const body = rows.map((row) => made("tr", {}, ...row.map((value) => made("td", typeof value === "number" ? { class: "n" } : {}, text(value)))));
  const table = made("table", { "data-name": label }, made("thead", {}, head), made("tbody", {}, ...body));
  const box = made("div", { class: "scroll tall", tabindex: "0", role: "group", "aria-label": `Numbers: ${label}` }, table);
  const whole = made("div", {}, box);
  equip(table);
  return whole;
}

function drawIn(part) {
  for (const chart of part.querySelectorAll(".chart:not(.vega-embed)")) if (chart.checkVisibility()) draw(chart);
}

drawIn(document);
for (const part of document.querySelectorAll("details")) part.addEventListener("toggle", () => drawIn(part));
