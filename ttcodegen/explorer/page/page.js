// Lists what the optimizer chose, takes decisions and executes the model with them.
//
// Names come from models: they go into the page as text, never as markup.
"use strict";

const PLAIN = new Set(["op", "function", "node"]);
const POLL_MS = 500;

let model = new URLSearchParams(location.search).get("model") ?? "";
/** Rows of the table, by function and node. */
let rows = new Map();
/** The decisions that were taken, by function and node. */
let overrides = {};

/** How much is optimized: a setting, unless it is what the server was started with. */
function policy() {
  const level = byId("optimize").value;
  return level === "" ? {} : { optimize: Number(level) };
}

const send = (cmdId, more = {}, modelPath = model) =>
  sendCommand(cmdId, modelPath, { ...policy(), ...more });

function showError(error) {
  byId("error").hidden = !error;
  byId("error").textContent = error ? error.message : "";
}

/** Makes a handler of an event that shows what goes wrong in it. */
function guarded(handle) {
  return async (event) => {
    showError(null);
    try {
      await handle(event);
    } catch (error) {
      showError(error);
    }
  };
}

function add(parent, tag, text = "", className = "") {
  const element = parent.appendChild(document.createElement(tag));
  element.textContent = text;
  element.className = className;
  return element;
}

const written = (value) => (typeof value === "string" ? value : JSON.stringify(value));
const key = (functionName, node) => JSON.stringify([functionName, node]);

// The table

/** The columns of numbers of an op: its time by the model of cost, and what the last execution
 *  found, each with that of the execution before. */
const NUMBERS = ["estimated", "measured", "correlation"];

function rowOf(functionName, node, op = "") {
  const known = rows.get(key(functionName, node));
  if (known) {
    return known;
  }
  const line = document.createElement("tr");
  byId("ops").append(line);
  const name = add(line, "td");
  add(name, "a", node).href = `/ttcodegen/code?${new URLSearchParams({ model, function: functionName, node })}`;
  const row = { functionName, node, name, op: add(name, "div", op, "op") };
  add(name, "div", functionName, "function");
  for (const column of NUMBERS) {
    const cell = add(line, "td", "", "number");
    row[column] = add(cell, "div");
    row[`${column}Before`] = add(cell, "div", "", "before");
  }
  row.chosen = add(line, "td", "", "chosen");
  row.fields = add(line, "td", "", "fields");
  row.wrong = add(name, "div", "", "wrong");
  rows.set(key(functionName, node), row);
  return row;
}

/** A decision: a program configuration is its kind, and opens to all that it says. */
function showDecision(parent, name, value) {
  const text = written(value);
  const kind = /^#ttnn\.(\w+)<(.*)>$/.exec(text);
  if (kind === null) {
    add(parent, "div", `${name}: ${text}`);
    return;
  }
  const details = add(parent, "details");
  add(details, "summary", `${name}: ${kind[1]}`);
  add(details, "div", kind[2]);
}

async function showDecisions() {
  for (const decision of await send("decisions")) {
    const row = rowOf(decision.function, decision.node, decision.op);
    row.chosen.replaceChildren();
    if (row.measured.textContent === "") {
      row.estimated.textContent = decision.estimated_us ?? "";
    }
    for (const [name, value] of Object.entries(decision.chosen)) {
      if (!PLAIN.has(name)) {
        showDecision(row.chosen, name, value);
      }
    }
    if (!row.fields.hasChildNodes()) {
      showTaken(row);
    }
  }
}

function takenOf(row) {
  return { ...overrides["*"]?.[row.node], ...overrides[row.functionName]?.[row.node] };
}

/** The decisions for an op as text, and a button that asks which others are legal. */
function showTaken(row) {
  row.fields.replaceChildren();
  for (const [name, value] of Object.entries(takenOf(row))) {
    add(row.fields, "div", `${name}: ${written(value)}`);
  }
  const button = add(row.fields, "button", "Choose");
  button.type = "button";
  button.addEventListener("click", guarded(() => showChoices(row)));
}

/** A select for each field, with the legal values. */
async function showChoices(row) {
  const [choices] = await send("choices", { node: row.node, function: row.functionName });
  const names = Object.keys(choices.fields);
  row.fields.replaceChildren();
  if (names.length === 0) {
    add(row.fields, "div", "nothing to choose");
  }
  const selects = new Map();
  for (const name of names) {
    const label = add(row.fields, "label", `${name} `);
    const select = add(label, "select");
    select.append(new Option("the optimizer decides", ""));
    for (const value of choices.fields[name]) {
      select.append(new Option(written(value), JSON.stringify(value)));
    }
    const taken = takenOf(row)[name];
    select.value = taken === undefined ? "" : JSON.stringify(taken);
    select.addEventListener("change", guarded(() => take(row, name, select, selects, choices)));
    selects.set(name, select);
  }
  allow(selects, choices.ways);
}

/** Disables the values that no way has together with those of the other fields. */
function allow(selects, ways) {
  const places = new Set(ways.flatMap((way) => Object.keys(way)));
  for (const [name, select] of selects) {
    if (!places.has(name)) {
      continue;
    }
    const others = [...selects].filter(
      ([other, { value }]) => other !== name && places.has(other) && value !== "");
    const fits = (way) => others.every(
      ([other, { value }]) => JSON.stringify(way[other]) === value);
    const legal = new Set(ways.filter(fits).map((way) => JSON.stringify(way[name])));
    for (const option of select.options) {
      option.disabled = option.value !== "" && !legal.has(option.value);
    }
  }
}

async function take(row, name, select, selects, choices) {
  const value = select.value === "" ? "" : JSON.parse(select.value);
  const attributes = [{ key: name, value }];
  try {
    if (value === "" && overrides["*"]?.[row.node]) {
      await override({ [row.node]: { function: "*", attributes } });
    }
    await override({ [row.node]: { function: row.functionName, attributes } });
  } catch (error) {
    const taken = takenOf(row)[name];
    select.value = taken === undefined ? "" : JSON.stringify(taken);
    throw error;
  } finally {
    allow(selects, choices.ways);
  }
  await showDecisions();
}

async function override(entries) {
  holdExecution(1);
  try {
    await send("override", { overrides: entries });
    await readOverrides();
  } finally {
    holdExecution(-1);
  }
}

async function readOverrides() {
  overrides = (await send("overrides"))[0].functions;
}

async function takeAllBack() {
  await override({});
  for (const row of rows.values()) {
    showTaken(row);
  }
  await showDecisions();
}

async function download() {
  const [content] = await send("overrides");
  saveOverrides(content);
}

// Execution

let reasonsToWait = 0;

/** The model is executed once no other execution runs and all decisions are with the server. */
function holdExecution(change) {
  reasonsToWait += change;
  byId("execute").disabled = reasonsToWait > 0;
}

async function execute() {
  await send("execute");
  await follow();
}

/** Shows how far the execution is, until it ends. */
async function follow() {
  byId("run").hidden = false;
  holdExecution(1);
  try {
    const asked = model;
    for (;;) {
      const [status] = await send("status_check", {}, asked);
      if (asked !== model) {
        return;
      }
      showStatus(status);
      if (status.isDone) {
        break;
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  } finally {
    holdExecution(-1);
  }
  if (byId("summary").textContent !== "") {
    await showResults();
  }
}

function showStatus(status) {
  byId("progress").max = status.total;
  byId("progress").value = status.progress;
  byId("status").textContent = `${status.currentStatus} (${status.timeElapsed.toFixed(1)} s)`;
  byId("log").textContent = status.stdout;
  byId("summary").textContent = Object.entries(status.summary ?? {})
    .map(([name, value]) => `${name}: ${value}`).join(", ");
  for (const row of rows.values()) {
    row.wrong.textContent = status.nodeErrors?.[row.node] ?? "";
  }
  byId("run").classList.toggle("failed", Boolean(status.error));
  if (status.error) {
    showError(new Error(status.error));
    byId("error").scrollIntoView({ block: "nearest" });
  }
}

function showTime(now, before, value, change) {
  now.textContent = value ?? "";
  before.textContent = change === undefined ? "" : `before ${(value - change).toFixed(3)}`;
  now.classList.toggle("better", change < 0);
  now.classList.toggle("worse", change > 0);
}

/** Writes the numbers of the last execution, and of the one before it, into the table. */
async function showResults() {
  const metrics = new Map();
  for (const { metric, data } of await send("node_data")) {
    metrics.set(metric, data);
  }
  const estimates = Object.entries(metrics.get("estimated_us") ?? {});
  const lowered = estimates.filter(([graph]) => graph.startsWith("lowered: "));
  for (const [graph, { results }] of lowered.length > 0 ? lowered : estimates) {
    const valueOf = (metric, node) => metrics.get(metric)?.[graph]?.results[node]?.value;
    for (const [node, { value }] of Object.entries(results)) {
      const row = rowOf(graph.replace(/^lowered: /, ""), node);
      showTime(row.estimated, row.estimatedBefore, value, valueOf("estimated_change", node));
      const [measured, change] = [valueOf("measured_us", node), valueOf("measured_change", node)];
      showTime(row.measured, row.measuredBefore, measured, change);
      row.correlation.textContent = valueOf("correlation", node) ?? "";
      const before = valueOf("correlation_before", node);
      row.correlationBefore.textContent = before === undefined ? "" : `with before ${before}`;
    }
  }
}

// Models

async function open(path) {
  model = path;
  rows = new Map();
  byId("ops").replaceChildren();
  byId("run").hidden = true;
  const query = `model=${encodeURIComponent(path)}`;
  byId("graph").href = `/ttcodegen/graph?${query}`;
  byId("code").href = `/ttcodegen/code?${query}`;
  history.replaceState(null, "", `/ttcodegen/?${query}`);
  await readOverrides();
  await guarded(showDecisions)();
  const { executed } = (await send("models", {}, "")).find((each) => each.path === path) ?? {};
  if (executed) {
    await follow();
  }
}

async function begin() {
  const paths = (await send("models", {}, "")).map((each) => each.path);
  if (model !== "" && !paths.includes(model)) {
    paths.push(model);
  }
  byId("empty").hidden = paths.length > 0;
  for (const path of paths) {
    byId("model").append(new Option(path, path));
  }
  if (paths.length > 0) {
    byId("model").value = model || paths[0];
    await open(byId("model").value);
  }
}

byId("model").addEventListener("change", guarded(() => open(byId("model").value)));
byId("optimize").addEventListener("change", guarded(() => model !== "" && open(model)));
byId("execute").addEventListener("click", guarded(execute));
byId("download").addEventListener("click", guarded(download));
byId("reset").addEventListener("click", guarded(takeAllBack));
guarded(begin)();
