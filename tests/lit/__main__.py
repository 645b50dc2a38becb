"""Runs tests by hand: `python -m tests.lit tests/lit/passes`."""

from __future__ import annotations

import sys

from tests.lit.running import main

sys.exit(main(sys.argv[1:]))
