"""Tuning edits of a project: read back from its C++ as decisions, and applied again by op."""
