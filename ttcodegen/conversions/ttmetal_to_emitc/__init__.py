"""Lowering of host functions of device programs (TTMetal) to EmitC."""
