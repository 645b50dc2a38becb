"""EmitC: the IR of the C++ that ttcodegen writes, and everything that turns it into text.

- `builder`: A small typed interface for passes that write EmitC
- `expressions`: The EmitC ops that compute a value: operators, calls, constants, access to objects
- `formatting`: Formats C++ with clang-format in pieces, and caches the formatted text
- `inlining`: Inlining of values into expressions, names reserved in a file, and headers it needs
- `operators`: The EmitC ops that are C++ operators: a table of the regular ones, classes for the
  others
- `printer`: EmitC to C++: `print_module` returns the text of each file
- `spelling`: C++ spelling: types, numbers, strings, comments and identifiers
- `statements`: The EmitC ops that are statements, definitions and files, and the dialect of all of
  them
- `values`: C++ expressions of value ops, with minimal parentheses for readability
"""
