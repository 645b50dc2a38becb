"""Work split of the library's programs over cores, by kind of op."""
