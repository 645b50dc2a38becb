"""Runs tests by hand: `python -m tests.lit tests/lit/passes`, as `ttcodegen-lit` does."""

from __future__ import annotations

import sys

from ttcodegen.cli.lit import main

sys.exit(main(sys.argv[1:]))
