"""Decides where tensors lie and how programs spread over the cores, under a model of cost."""
