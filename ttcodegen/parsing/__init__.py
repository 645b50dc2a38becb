"""Reading MLIR text: fast, right, and with a diagnostic for whatever is wrong."""

from ttcodegen.parsing.module import parse_module, parse_operations
from ttcodegen.parsing.structure import check_supported

__all__ = ["check_supported", "parse_module", "parse_operations"]
