"""The types and attributes of all dialects, and the dialects that no catalogue makes."""
