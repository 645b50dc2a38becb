"""Damaged and nonsensical inputs by the thousand: a message or a result, never a crash, a hang or a
module that contradicts itself.

`pytest tests/fuzzing` takes a minute. `python -m tests.fuzzing --mutants 100000` is the long mode.
"""
