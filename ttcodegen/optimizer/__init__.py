"""Decides where tensors lie and how programs are distributed over cores, under a model of cost."""
