"""The command lines: options in, exit status out."""

from ttcodegen.cli.class_cache import keep_generated_methods

# Before anything that defines data classes is imported.
keep_generated_methods()
