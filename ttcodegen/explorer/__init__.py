"""tt-explorer: models as graphs in Model Explorer, compiled, run and tuned from there.

    graph           the graphs of Model Explorer, as their JSON has them
    op_text         tensors, layouts, attributes and constants in a few words
    module_graphs   modules of MLIR as graphs
    device_graphs   `.ttm` files as graphs
    models          what a path holds, and the stages of its compile
    access          which paths a session may read
    choices         what the optimizer chose for an op, and what is legal
    settings        the settings of a command
    results         what an execution found, op by op
    session         the commands of the REST interface, and what outlives a request
    execution       compiles, builds, runs and measures a model in a thread of its own
    server          serves the page of Model Explorer, its interface and pages of our own
    client          the interface from Python: `TTExplorer`
    main            the adapter that the stock `model-explorer` loads

Only `main` imports the package of Model Explorer (the extra `explorer`).
"""
