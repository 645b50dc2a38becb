"""Lowering of TTNN functions to EmitC."""
