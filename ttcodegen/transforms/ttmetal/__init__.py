"""Passes on device programs: L1 placement, buffer aliases, shared kernels."""
