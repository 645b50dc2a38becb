"""Passes on functions of any dialect: inlining, common subexpressions, const-eval."""
