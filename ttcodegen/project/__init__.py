"""Writes the generated project, builds it and checks it."""
