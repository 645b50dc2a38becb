"""Loads built programs and flatbuffers, and runs them on arrays and device tensors."""
