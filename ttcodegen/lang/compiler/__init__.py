"""Compiles operations of TT-Lang to device programs."""
