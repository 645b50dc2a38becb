"""StableHLO as it is written: assembly, portable bytecode (VHLO), names in locations."""
