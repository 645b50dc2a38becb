"""Candidates: the ways to make a call, by kind of op."""
