"""Foundation of every layer: diagnostics, messages, the cache folder, user files.

- `array_files`: Loading of arrays from .npy files
- `cache`: The user's cache folder: compiled backends and formatted texts
- `diagnostics`: Diagnostics: compile errors, warnings and their rendering
- `lazy_numpy`: Lazy import of numpy: most runs of the compiler never compute
- `messages`: Messages on standard error: verbosity, progress, printable text, suggestions, user
  files
- `whole_files`: Files that readers see as a whole or not at all
"""
