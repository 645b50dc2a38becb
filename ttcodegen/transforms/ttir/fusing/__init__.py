"""Fusion patterns: ops that a model spells out, as the op that computes them."""
