"""EmitC: the IR of the C++ that ttcodegen writes, and everything that turns it into text."""
