"""The kept programs are tests of the passes, too."""

from tests.lit.collection import pytest_collect_file

__all__ = ["pytest_collect_file"]
