"""Spellings of other years and other tools, turned into today's while a module is read."""
