// Tables that sort by their headers and are saved as CSV. Without this script the page shows the same numbers.
"use strict";
const valueOf = (cell) => (cell.dataset.v ?? cell.textContent.trim());
const isNumber = (text) => text !== "" && !Number.isNaN(Number(text));

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

function csvOf(table) {
  // A spreadsheet takes a text that begins so for a formula.
  const safe = (text) => (/^[=+\-@\t\r]/.test(text) && !isNumber(text) ? `'${text}` : text);
  const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const head = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  const lines = [head, ...[...table.tBodies[0].rows].map((row) => [...row.cells].map(valueOf))];
  return lines.map((line) => line.map(safe).map(quoted).join(",")).join("\r\n") + "\r\n";
}

for (const table of document.querySelectorAll("table[data-name]")) {
  [...table.tHead.rows[0].cells].forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    button.addEventListener("click", () => sortBy(table, column, header));
    header.append(button);
  });
  const save = document.createElement("button");
  save.type = "button";
  save.className = "csv";
  save.textContent = "Save as CSV";
  save.setAttribute("aria-label", `Save as CSV: ${table.parentElement.getAttribute("aria-label")}`);
  save.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csvOf(table)], { type: "text/csv" }));
    link.download = `${table.dataset.name}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  table.parentElement.before(save);
}
