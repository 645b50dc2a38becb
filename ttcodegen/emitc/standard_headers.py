"""The headers of the standard library that emitted C++ needs for the names that it uses."""

from __future__ import annotations

import re
from collections.abc import Iterable

from xdsl.ir import Operation

from ttcodegen.emitc.reserved import mentioned_texts

_HEADERS = {
    "array": "array",
    "get": "tuple",
    "int32_t": "cstdint",
    "int64_t": "cstdint",
    "make_tuple": "tuple",
    "max": "algorithm",
    "min": "algorithm",
    "move": "utility",
    "nullopt": "optional",
    "numeric_limits": "limits",
    "optional": "optional",
    "pair": "utility",
    "size_t": "cstddef",
    "string": "string",
    "tie": "tuple",
    "tuple": "tuple",
    "uint8_t": "cstdint",
    "uint16_t": "cstdint",
    "uint32_t": "cstdint",
    "uint64_t": "cstdint",
    "variant": "variant",
    "vector": "vector",
}
_STANDARD_NAME = re.compile(r"\bstd::(\w+)|(?<![\w:.])(u?int(?:8|16|32|64)_t)\b")


def standard_headers(operations: Iterable[Operation]) -> set[str]:
    """The standard headers of the names that the C++ of `operations` mentions.

    The library's own headers include most of them today; which ones differs from release to
    release, so that a file names what it uses.
    """
    names = {
        qualified or integer
        for text in mentioned_texts(operations)
        for qualified, integer in _STANDARD_NAME.findall(text)
    }
    return {_HEADERS[name] for name in names & _HEADERS.keys()}
