// The page of bhemu sweep: heat map over two parameters, and the table of runs.
"use strict";
const sweep = JSON.parse(document.getElementById("sweep").textContent);
const by = id => document.getElementById(id);
const element = (name, text, className) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};
const shown = value => value === null ? "" :
  typeof value === "number" && !Number.isInteger(value) ? String(+value.toPrecision(4)) : String(value);

// Heat map: every cell is the mean of a column over the runs with these two values.
function means(x, y, value) {
  const cells = new Map();
  const xs = sweep.columns[x], ys = sweep.columns[y], values = sweep.columns[value];
  for (let run = 0; run < xs.length; run++) {
    if (values[run] === null || xs[run] === null || ys[run] === null) continue;
    const key = JSON.stringify([xs[run], ys[run]]);
    const cell = cells.get(key) || { sum: 0, count: 0 };
    cell.sum += Number(values[run]);
    cell.count++;
    cells.set(key, cell);
  }
  return cells;
}

function unique(name) {
  const values = [...new Set(sweep.columns[name])].filter(value => value !== null);
  return values.every(value => typeof value === "number") ? values.sort((a, b) => a - b) : values;
}

function drawHeat() {
  const [x, y, value] = ["heat-x", "heat-y", "heat-value"].map(id => by(id).value);
  const cells = means(x, y, value), all = [...cells.values()].map(cell => cell.sum / cell.count);
  const low = Math.min(...all), high = Math.max(...all);
  const table = element("table");
  const head = table.appendChild(element("tr"));
  head.append(element("th", `${y} \\ ${x}`));
  unique(x).forEach(value => head.append(element("th", shown(value))));
  for (const down of unique(y)) {
    const row = table.appendChild(element("tr"));
    row.append(element("th", shown(down)));
    for (const across of unique(x)) {
      const cell = cells.get(JSON.stringify([across, down]));
      const drawn = row.appendChild(element("td", cell ? shown(cell.sum / cell.count) : "", "heat"));
      if (!cell) continue;
      const share = high > low ? (cell.sum / cell.count - low) / (high - low) : 0;
      drawn.style.backgroundColor = `rgb(211 84 0 / ${(0.06 + 0.84 * share).toFixed(3)})`;
      drawn.title = `${x} ${shown(across)}, ${y} ${shown(down)}: ${cell.count} runs`;
    }
  }
  by("heat").replaceChildren(table);
  by("heat-note").textContent = all.length ?
    `mean of ${value}: ${shown(low)} to ${shown(high)}` : `no run has ${value}`;
}

// Table of runs: a click on a head sorts, the field filters.
const order = { column: "run", down: false };
function drawRuns() {
  const wanted = by("filter").value.toLowerCase();
  const columns = sweep.shown, rows = [];
  for (let run = 0; run < sweep.columns.run.length; run++) {
    const row = columns.map(name => sweep.columns[name][run]);
    if (!wanted || row.some(value => shown(value).toLowerCase().includes(wanted))) rows.push(run);
  }
  const values = sweep.columns[order.column], sign = order.down ? -1 : 1;
  rows.sort((a, b) => {
    const [left, right] = [values[a], values[b]];
    if (left === right) return a - b;
    if (left === null || right === null) return left === null ? 1 : -1;
    return sign * (left < right ? -1 : 1);
  });
  const body = element("tbody");
  for (const run of rows.slice(0, sweep.most)) {
    const row = body.appendChild(element("tr"));
    for (const name of columns) {
      const value = sweep.columns[name][run];
      const bad = name === "outcome" && value !== "ok" ? "bad" : "";
      row.append(element("td", shown(value), bad || (typeof value === "number" ? "number" : "")));
    }
    row.title = sweep.columns.message[run] || "";
  }
  by("runs").replaceChildren(heads(columns), body);
  by("runs-note").textContent =
    `${rows.length} of ${sweep.columns.run.length} runs` +
    (rows.length > sweep.most ? `, the first ${sweep.most} are shown` : "");
}

function heads(columns) {
  const head = element("thead"), row = head.appendChild(element("tr"));
  for (const name of columns) {
    const mark = order.column === name ? (order.down ? " ▼" : " ▲") : "";
    const cell = row.appendChild(element("th", name + mark));
    cell.addEventListener("click", () => {
      order.down = order.column === name && !order.down;
      order.column = name;
      drawRuns();
    });
  }
  return head;
}

if (by("heat")) {
  for (const id of ["heat-x", "heat-y", "heat-value"]) by(id).addEventListener("change", drawHeat);
  drawHeat();
}
by("filter").addEventListener("input", drawRuns);
drawRuns();
