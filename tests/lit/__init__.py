"""Tests that are MLIR files with RUN and CHECK lines, in the manner of LLVM's lit."""
