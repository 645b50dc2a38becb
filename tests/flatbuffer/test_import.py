"""Writing a flatbuffer does not load numpy, and leaves it usable."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
from ttcodegen.foundation.lazy_numpy import import_without_numpy
library = import_without_numpy("flatbuffers.builder")
assert "numpy" not in sys.modules
builder = library.Builder(0)
assert builder.CreateString("name") > 0
import numpy
assert sys.modules["numpy"] is numpy
# What does need numpy finds it.
assert builder.CreateNumpyVector(numpy.arange(3)) > 0
"""


def test_flatbuffers_get_numpy_when_they_use_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
