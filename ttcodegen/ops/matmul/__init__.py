"""Matmul, dense and sparse."""
