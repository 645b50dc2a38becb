"""Ops of training steps."""
