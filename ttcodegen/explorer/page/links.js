// Runs in the page of Model Explorer: makes links of the lines of C++ that its side panel shows.
//
// The panel belongs to the page's framework, so a link is put beside a key, and nothing is replaced.
"use strict";

const KEY = "C++";
const MARK = "ttcodegen-lines";

/** The model and the node that the page shows, of which it tells in its address. */
function shown() {
  try {
    const data = JSON.parse(new URLSearchParams(location.search).get("data"));
    const panes = data.uiState?.paneStates ?? [];
    const pane = panes.find(({ selected }) => selected) ?? panes[0] ?? {};
    const named = data.models.find(({ url }) => url.split("/").pop() === pane.selectedCollectionLabel);
    return { model: (named ?? data.models[0]).url, node: pane.selectedNodeId ?? "" };
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
    const at = shown();
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
      link.target = "_blank";
      link.rel = "noopener";
      key.append(link);
    }
    if (link.getAttribute("href") !== address) {
      link.href = address;
    }
  }
}

new MutationObserver(addLinks).observe(document.body, { childList: true, subtree: true });
