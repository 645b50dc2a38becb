"""What the names of arguments say about their values."""

from __future__ import annotations

import re

VARIANCES = (0.5, 1.5)
"""The range of random variances: their roots are taken, and divided by."""

_VARIANCE = re.compile(r"(^|[^a-z])(running_)?var(iance)?$")


def is_variance(name: str) -> bool:
    """True if an argument of that name in the source holds variances, as batch norms call them."""
    return _VARIANCE.search(name.lower()) is not None
