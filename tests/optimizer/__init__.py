"""Tests of the optimizer and its model of cost."""
