"""Reductions, scans, sorting, softmax and norms."""
