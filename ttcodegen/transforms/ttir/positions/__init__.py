"""Values that are functions of positions in a tensor, such as causal masks."""
