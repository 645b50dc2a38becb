"""Runs programs in numpy, the source and the lowered one, and compares what comes out."""
