// The graph of a model beside its C++: links.js shows the lines of the op that is selected there.
"use strict";

const model = new URLSearchParams({ model: new URLSearchParams(location.search).get("model") ?? "" });
document.querySelector("[name=graph]").src = `/ttcodegen/graph?${model}`;
document.querySelector("[name=code]").src = `/ttcodegen/code?${model}`;
