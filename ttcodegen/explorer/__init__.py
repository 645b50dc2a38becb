"""tt-explorer: adapter and server that show, compile, run and tune models in Model Explorer.

- `access`: File access of a session, confined to its folders and uploads
- `choices`: Decisions of the optimizer for the ops of a model, and their alternatives
- `client`: Python client of `ttcodegen-explorer`'s REST interface, by the standard library alone
- `execution`: Executions of a model in a thread: compile, build, run, measure; progress and node
  data
- `graph`: Graphs of Model Explorer: nodes, attribute texts, sections of large layers, device
  programs
- `main`: Adapter that the stock server of Model Explorer loads
- `models`: Graphs of modules, flatbuffers and projects, and of the stages of a compile
- `module_graphs`: Graphs of MLIR modules: one per function, and one per region
- `requests`: Long-running requests on models, as pure functions of a path and options
- `server`: HTTP server of Model Explorer's page, the REST interface and uploads
- `session`: Commands of the REST interface, and the state of a session
- `stages`: Stages of a compile: settings, graphs, and origins of ops across stages
- `synchronisation`: Node correspondence of two graphs of a model, for synchronized panes
- `workers`: Worker processes that compute requests on models

Only `main` imports the package of Model Explorer (the extra `explorer`).
"""
