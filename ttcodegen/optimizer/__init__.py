"""Decides where tensors are placed and how programs are distributed over cores, under a model of
cost."""
