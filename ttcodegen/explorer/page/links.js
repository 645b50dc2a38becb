// Runs in the page of Model Explorer: makes links of the lines of C++ that its side panel shows, and
// lets two panes follow each other by what their nodes were made of.
//
// The panel belongs to the page's framework, so a link is put beside a key, and nothing is replaced.
"use strict";

const KEY = "C++";
const MARK = "ttcodegen-lines";

/** The models of the page and its panes, of which it tells in its address. */
function told() {
  const data = JSON.parse(new URLSearchParams(location.search).get("data"));
  return { models: data.models, panes: data.uiState?.paneStates ?? [] };
}

/** The model that a pane shows. */
function modelOf(pane, models) {
  const named = models.find(({ url }) => url.split("/").pop() === pane.selectedCollectionLabel);
  return (named ?? models[0]).url;
}

/** The model and the node that a pane shows, whose side panel that is. */
function shown(panel) {
  try {
    const { models, panes } = told();
    const panels = [...document.querySelectorAll("info-panel")];
    const beside = panels.length === panes.length ? panes[panels.indexOf(panel)] : null;
    const pane = beside ?? panes.find(({ selected }) => selected) ?? panes[0] ?? {};
    return { model: modelOf(pane, models), node: pane.selectedNodeId ?? "" };
  } catch {
    return null;
  }
}

function addLinks() {
  for (const row of document.querySelectorAll("info-panel tr")) {
    const key = row.querySelector("td.key");
    const value = row.querySelector("td.value .one-line-text");
    if (key?.querySelector("hoverable-label")?.textContent.trim() !== KEY || !value) {
      continue;
    }
    const at = shown(row.closest("info-panel"));
    if (at === null) {
      continue;
    }
    const lines = value.textContent.trim();
    const address = `/ttcodegen/code?${new URLSearchParams({ ...at, lines })}`;
    let link = key.querySelector(`.${MARK}`);
    if (link === null) {
      link = document.createElement("a");
      link.className = MARK;
      link.textContent = "open";
      link.target = window.parent === window ? "_blank" : "code";
      link.rel = "noopener";
      key.append(link);
    }
    if (link.getAttribute("href") !== address) {
      link.href = address;
    }
  }
}

// The mapping is the same as for "Upload mapping from computer", the one mode of the page that
// takes any. Who chooses another mode there keeps it. Source: `syncNavigationService` in the bundle
// of ai-edge-model-explorer 0.1.34, which the page's renderers have.
const MODE = "from_computer";
let followed = "";
let asked = 0;

/** The mapping of two graphs; an empty one, with which the page matches ids, if there is none. */
async function mappingOf(model, left, right) {
  const answer = await fetch("/apipost/v1/send_command", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({
      cmdId: "synchronisation",
      extensionId: "ttcodegen",
      modelPath: model,
      settings: { left, right },
      deleteAfterConversion: false,
    }),
  });
  return (await answer.json()).graphs?.[0] ?? {};
}

function give(service, mapping) {
  service.updateSyncNavigationData(MODE, mapping);
  const { leftToRightMapping, rightToLeftMapping } = mapping;
  if (leftToRightMapping) {
    // A node may belong to more than the entries of the page can say.
    const taken = service.savedProcessedSyncNavigationData()[MODE];
    Object.assign(taken, { leftToRightMapping, rightToLeftMapping });
  }
}

async function follow() {
  const service = Object.values(window.me_test?.renderers ?? {})[0]?.syncNavigationService;
  if (!service?.updateSyncNavigationData) {
    return;
  }
  let state;
  try {
    state = told();
  } catch {
    return;
  }
  const { models, panes } = state;
  if (panes.length !== 2) {
    followed = "";
    return;
  }
  const [left, right] = panes.map((pane) => modelOf(pane, models));
  const graphs = panes.map((pane) => pane.selectedGraphId);
  const pair = JSON.stringify([left, right, ...graphs]);
  if (pair === followed || graphs.some((graph) => !graph)) {
    return;
  }
  if (followed === "" && service.mode() === "disabled") {
    service.mode.set(MODE);
  }
  followed = pair;
  asked += 1;
  const request = asked;
  try {
    const mapping = left === right ? await mappingOf(left, ...graphs) : {};
    if (request === asked) {
      give(service, mapping);
    }
  } catch (error) {
    followed = "";
    console.warn("the panes follow each other by ids:", error);
  }
}

/** Shows the lines of the selected op in the frame beside this page, where there is one. */
let selected = "";
function showCode() {
  const code = window.parent === window ? null : window.parent.frames.code;
  if (!code) {
    return;
  }
  try {
    const { models, panes } = told();
    const pane = panes.find((each) => each.selected) ?? panes[0] ?? {};
    const at = { model: modelOf(pane, models), node: pane.selectedNodeId ?? "" };
    if (at.node !== "" && at.node !== selected) {
      selected = at.node;
      code.location.replace(`/ttcodegen/code?${new URLSearchParams(at)}`);
    }
  } catch {
    // The address does not tell of a pane yet.
  }
}

setInterval(follow, 500);
setInterval(showCode, 250);
new MutationObserver(addLinks).observe(document.body, { childList: true, subtree: true });
