"""Fast parsing of MLIR text, with diagnostics.

- `attributes`: Types, attributes and locations: xDSL's attribute parser with memoization and fixes
- `elements`: Constants: `dense`, `array` and `dense_resource` attributes, and their element
  literals
- `emitc_forms`: Custom assembly formats of TTIR and EmitC operations
- `module`: Parsing of whole files; quantized tensors and layouts of a source
- `operations`: Operations, values and regions
- `structure`: Module structure: wrappers, CPU modules, and unsupported ops reported at once
- `tokens`: Tokens of MLIR text, older spellings of TTIR, and the resolution order of attribute
  aliases
"""

from ttcodegen.parsing.module import parse_module, parse_operations
from ttcodegen.parsing.structure import check_supported

__all__ = ["check_supported", "parse_module", "parse_operations"]
