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

/** Lists the ops that a person has changed, with what was decided; gives their names. */
function showEdits(files) {
  const found = new Map(
    files.flatMap((file) => file.edited).map((each) => [`${each.function} ${each.node}`, each]));
  for (const { function: of, node: name, edit } of found.values()) {
    const link = document.createElement("a");
    link.textContent = name;
    link.href = `/ttcodegen/code?${new URLSearchParams({ model, function: of, node: name })}`;
    const item = document.createElement("li");
    item.append(link, edit === "" ? "" : `: ${edit}`);
    byId("edits").append(item);
  }
  byId("overrides").hidden = found.size === 0;
  return [...found.values()].map((each) => each.node);
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
