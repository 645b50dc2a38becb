"""Beam search over placements, and L1 allocation."""
