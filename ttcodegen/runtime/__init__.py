"""Runs programs: the source and the flatbuffer in numpy, and compares what comes out."""
