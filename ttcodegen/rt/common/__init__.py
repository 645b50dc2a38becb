"""The places where ttrt has its Python interface, so that its scripts need another name only."""
