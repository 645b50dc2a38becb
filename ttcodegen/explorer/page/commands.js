// Commands to the server, for the pages that send them.
"use strict";

const byId = (id) => document.getElementById(id);

/** The `graphs` of the answer to a command; throws what the server says is wrong. */
async function sendCommand(cmdId, modelPath, settings = {}) {
  const answer = await fetch("/apipost/v1/send_command", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({
      cmdId, modelPath, settings, extensionId: "ttcodegen", deleteAfterConversion: false,
    }),
  });
  const content = await answer.json();
  if (content.error) {
    throw new Error(content.error);
  }
  return content.graphs;
}

/** Saves decisions as a file for `ttcodegen --overrides`. */
function saveOverrides(content) {
  const link = document.createElement("a");
  const text = `${JSON.stringify(content, null, 2)}\n`;
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = "overrides.json";
  link.click();
  URL.revokeObjectURL(link.href);
}
