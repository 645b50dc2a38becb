// Shows the C++ of a model, with the lines of an op, or those that a person has changed.
//
// Names and code come from models: they go into the page as text, never as markup.
"use strict";

const query = new URLSearchParams(location.search);
const model = query.get("model") ?? "";
const functionName = query.get("function") ?? "";
const node = query.get("node") ?? "";
/** Places as a graph has them: `src/model.cpp:12-14, src/model.cpp:20`. */
const places = (query.get("lines") ?? "").split(", ").flatMap((text) => {
  const match = /^(.+):(\d+)(?:-(\d+))?$/.exec(text);
  return match ? [{ path: match[1], first: +match[2], last: +(match[3] ?? match[2]) }] : [];
});

const send = (cmdId) => sendCommand(cmdId, model);
const isNode = (lines) => lines.node === node && (!functionName || lines.function === functionName);

/** The lines of a file that were requested. */
const askedLines = (file) => places.length > 0
  ? places.filter(({ path }) => path === file.path) : file.lines.filter(isNode);

function show(file) {
  const chosen = askedLines(file);
  const changed = new Set(file.changed);
  const byLine = new Map();
  for (const lines of file.lines) {
    for (let line = lines.first; line <= lines.last; ++line) {
      byLine.set(line, [...(byLine.get(line) ?? []), lines.node]);
    }
  }
  const items = file.text.replace(/\n$/, "").split("\n").map((text, index) => {
    const item = document.createElement("li");
    item.textContent = text;
    item.title = [...new Set(byLine.get(index + 1) ?? [])].join(", ");
    item.classList.toggle("changed", changed.has(index + 1));
    item.classList.toggle(
      "chosen", chosen.some(({ first, last }) => first <= index + 1 && index + 1 <= last));
    return item;
  });
  byId("text").replaceChildren(...items);
  byId("text").querySelector(".chosen, .changed")?.scrollIntoView({ block: "center" });
}

/** A row of the table of edits: a time is marked where it is not what it was. */
function addRow(body, cells, before, now) {
  const row = body.insertRow();
  for (const cell of cells) {
    row.insertCell().append(cell);
  }
  for (const [at, value] of [[2, before], [3, now]]) {
    const cell = row.insertCell(at);
    cell.className = "number";
    cell.textContent = value === undefined ? "" : value.toFixed(1);
  }
  row.cells[3].classList.toggle("better", now < before);
  row.cells[3].classList.toggle("worse", now > before);
}

/** Lists the ops that a person has changed, and those that change with them, with what was decided
 *  and what the model of cost says of it; gives the names of the former. */
function showEdits(files) {
  const found = [...new Map(
    files.flatMap((file) => file.edited).map((each) => [`${each.function} ${each.node}`, each]),
  ).values()];
  const [body] = byId("edits").tBodies;
  for (const { function: of, node: name, op, edit, before_us: before, estimated_us: now } of found) {
    const link = document.createElement("a");
    link.textContent = name;
    link.href = `/ttcodegen/code?${new URLSearchParams({ model, function: of, node: name })}`;
    addRow(body, [link, op ?? "", edit], before, now);
  }
  if (found.length > 0) {
    const sum = (key) => found.reduce((total, each) => total + (each[key] ?? 0), 0);
    addRow(byId("edits").tFoot, ["total", "", ""], sum("before_us"), sum("estimated_us"));
  }
  byId("edits").hidden = found.length === 0;
  byId("overrides").hidden = found.length === 0;
  return found.filter((each) => each.edit !== "" || each.op === undefined).map((each) => each.node);
}

/** Saves the decisions of the C++ as a file for `ttcodegen --overrides`. */
async function download(event) {
  event.preventDefault();
  const [content] = await send("overrides");
  saveOverrides(content);
}

async function begin() {
  byId("graph").href = `/ttcodegen/graph?${new URLSearchParams({ model })}`;
  byId("beside").href = `/ttcodegen/beside?${new URLSearchParams({ model })}`;
  byId("beside").hidden = window.parent !== window;
  byId("decisions").href = `/ttcodegen/?${new URLSearchParams({ model })}`;
  const files = await send("code");
  for (const file of files) {
    byId("file").append(new Option(file.path, file.path));
  }
  const asked = files.filter((file) => askedLines(file).length > 0);
  const first = files.find(({ path }) => path === places[0]?.path) ?? asked[0]
    ?? files.find((file) => file.changed.length > 0) ?? files[0];
  const changed = showEdits(files);
  if (node !== "") {
    byId("told").textContent = asked.length > 0
      ? `The lines of ${node}.` : `${node} has no line of its own.`;
  } else if (changed.length > 0) {
    byId("told").textContent = `Changed: ${changed.join(", ")}.`;
  }
  if (first) {
    byId("file").value = first.path;
    show(first);
  }
  byId("file").addEventListener("change", () => {
    show(files.find((file) => file.path === byId("file").value));
  });
}

byId("overrides").addEventListener("click", download);
begin().catch((error) => {
  byId("error").hidden = false;
  byId("error").textContent = error.message;
});
