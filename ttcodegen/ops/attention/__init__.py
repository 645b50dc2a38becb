"""Attention, its key and value caches, rotary embedding, and sampling."""
