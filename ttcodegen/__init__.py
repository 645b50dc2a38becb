"""Compiles tensor programs in the TTIR dialect to C++ projects for Tenstorrent accelerators."""

__version__ = "0.1.0"
