"""Host C++ functions of both targets: recording, layers, variables, interface."""
