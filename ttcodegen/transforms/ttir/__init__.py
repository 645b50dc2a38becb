"""Passes on TTIR: canonical form, element types, decompositions, movement rules."""
