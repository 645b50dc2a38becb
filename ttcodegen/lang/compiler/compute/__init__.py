"""Compute kernels of TT-Lang: block expressions as loops over tiles."""
