"""Rewrites before layouts: dense rows, decode forms, weight types, fidelity."""
