"""Text to module: TTIR as the world writes it, read fast, with located diagnostics."""

from ttcodegen.parsing.module import parse_module
from ttcodegen.parsing.structure import check_supported

__all__ = ["check_supported", "parse_module"]
