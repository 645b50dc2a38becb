"""Compiles operations of TT-Lang to programs of the device."""
