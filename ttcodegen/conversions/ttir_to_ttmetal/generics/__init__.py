"""`ttir.generic`: the work of each device program as a region."""
