"""Tuning edits of a project: read from its C++ as decisions, and reapplied by op.

- `application`: Reapplies tuning edits to the C++ of a changed model by rewriting its calls
- `applied_decisions`: Files of a project with the user's decisions, and the decisions that do not
  apply
- `call_decisions`: Applies decisions of calls to their counterparts in a changed model
- `call_settings`: Settings of library calls in C++: where the catalogue writes them among the
  arguments
- `decisions`: Compares edited C++ with the generated one, call by call
- `edited_calls`: Calls of a program as generated and as edited in its C++
- `edited_files`: Edits of a project's C++ by file: decisions of its calls and constants, and edits
  of text
- `legality`: Legality of decisions by the library's rules for the shapes of their ops
- `matching`: Matches the calls of a program with those of a changed model
- `meanings`: Library calls of C++ statements, for the comparison of their meanings
- `order`: Dependences between statements: legal reorderings and last uses of variables
- `override_entries`: User's decisions as entries of the overrides file
- `rearranged_calls`: Reapplies moves and replacements of calls to the C++ of a changed model
- `rearrangements`: Detection of moved calls, and of replacements by equivalent calls, in edited C++
- `report`: User's decisions as entries of the overrides file and as text
- `rewritten_calls`: Calls of generated C++ with other arguments, rendered as statements
- `search`: Search of faster alternatives of ops by the cost model, written as edits
- `setting_values`: Values of settings in C++: as fields of the overrides file, and program configs
- `statements`: Parser of the projects' subset of C++: statements, calls, arguments, values
"""
