"""`from ttcodegen.rt.common.api import API`, as scripts for ttrt write it."""

from ttcodegen.rt import API

__all__ = ["API"]
