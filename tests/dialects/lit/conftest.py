"""The MLIR files of this folder are tests."""

from tests.lit.collection import pytest_collect_file

__all__ = ["pytest_collect_file"]
