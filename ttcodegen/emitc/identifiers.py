"""Names in the generated project: C++ identifiers, file names, and their uniqueness.

Names come from the input (argument names, locations, module names), so they may hold anything. What
leaves this module is always an identifier that C++20 allows a program to use: no keyword, no
reserved identifier ([lex.name]: a double underscore, a leading underscore and capital), no macro of
the standard library.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

_MAX_LENGTH = 64
"""Longer names (nested locations) make lines unreadable; the allocator keeps cut names apart."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
    char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires return
    short signed sizeof static static_assert static_cast struct switch template this thread_local
    throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
    xor xor_eq
    final import module override
    """.split()
)

_TAKEN_BY_LIBRARIES = frozenset(
    # Macros that are not spelled in capitals (<cassert>, <cerrno>, <cstdio>, <complex.h>,
    # <sys/sysmacros.h>, GNU predefined ones), the namespaces that emitted code calls into, and
    # names that a program may not give to anything else.
    """
    assert errno stdin stdout stderr offsetof setjmp va_arg va_copy va_end va_start I complex
    imaginary major minor makedev unix linux i386 std tt ttnn main
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t ssize_t ptrdiff_t
    """.split()
)

_RESERVED_FILE_STEMS = frozenset(
    ["con", "prn", "aux", "nul", *(f"com{n}" for n in range(10)), *(f"lpt{n}" for n in range(10))]
)


def is_identifier(text: str) -> bool:
    """True if `text` is an identifier that generated code may declare."""
    return (
        _IDENTIFIER.fullmatch(text) is not None
        and text not in _KEYWORDS
        and "__" not in text
        and not (text[0] == "_" and (len(text) == 1 or text[1].isupper()))
    )


@lru_cache(maxsize=65536)
def identifier(text: str, fallback: str = "value") -> str:
    """A C++ identifier that reads like `text`: `layer1.0.conv/weight` -> `layer1_0_conv_weight`.

    Accents are dropped, other characters become underscores; `fallback` (itself an
    identifier) is used where nothing is left, and precedes a leading digit.
    """
    words = _words(text)
    if words and words[0][0].isdigit():
        words.insert(0, fallback)
    name = "_".join(words) or fallback
    if len(name) > _MAX_LENGTH:
        # The last words say most: `..._layer_0_attention_query_weight`.
        while len(words) > 1 and len("_".join(words)) > _MAX_LENGTH:
            words.pop(0)
        name = "_".join(words)[:_MAX_LENGTH]
        if name[0].isdigit():
            name = f"{fallback}_{name}"[:_MAX_LENGTH]
        name = name.rstrip("_")
    # Macros are spelled in capitals; no list of them would ever be complete.
    if len(name) > 1 and not any(c.islower() for c in name) and any(c.isupper() for c in name):
        name = name.lower()
    if name in _KEYWORDS or name in _TAKEN_BY_LIBRARIES:
        name += "_"
    return name


def type_name(text: str, fallback: str = "Type") -> str:
    """A C++ type name: `linear_relu_stack` -> `LinearReluStack`."""
    words = _words(_snake_case(text))
    name = "".join(word[0].upper() + word[1:] for word in words)
    if not name or name[0].isdigit():
        name = fallback + name
    return identifier(name, fallback)


def constant_name(text: str) -> str:
    """The name of a constant: `dram interleaved` -> `kDramInterleaved`."""
    return identifier("k" + "".join(w[0].upper() + w[1:] for w in _words(_snake_case(text))), "k")


def snake_case(text: str, fallback: str = "value") -> str:
    """An identifier in lower case with underscores: `MemoryConfig` -> `memory_config`."""
    return identifier(_snake_case(text), fallback)


def file_stem(text: str, fallback: str = "module") -> str:
    """A file name without its ending that every file system takes; an identifier as well."""
    name = identifier(text, fallback)
    return name + "_" if name.lower() in _RESERVED_FILE_STEMS else name


def _words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKD", text)
    ascii_text = "".join(
        c if c.isascii() else "" if unicodedata.combining(c) else "_" for c in folded
    )
    return [word for word in re.split(r"[^A-Za-z0-9]+", ascii_text) if word]


def _snake_case(text: str) -> str:
    separated = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", text)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", separated).lower()


class NameScope:
    """Hands out names that are unique in a scope and in the scopes around it.

    The numbers depend on the order of the requests alone: `x`, `x_2`, `x_3`. A name of an inner
    scope is free again outside it, as in C++.
    """

    def __init__(self, reserved: Iterable[str] = (), *, parent: NameScope | None = None) -> None:
        self._parent = parent
        self._taken = set(reserved)
        self._next_number: dict[str, int] = {}

    def nested(self) -> NameScope:
        """A scope inside this one."""
        return NameScope(parent=self)

    def reserve(self, *names: str) -> None:
        """Takes `names`, whether or not they are free."""
        self._taken.update(names)

    def is_taken(self, name: str) -> bool:
        """True if `name` is in use here or in a scope around."""
        scope: NameScope | None = self
        while scope is not None:
            if name in scope._taken:
                return True
            scope = scope._parent
        return False

    def unique(self, name: str) -> str:
        """Takes `name` (an identifier), or the first free of `name_2`, `name_3`, ..."""
        if not self.is_taken(name):
            self._taken.add(name)
            return name
        stem = name.rstrip("_")
        number = self._number_after(stem)
        while self.is_taken(f"{stem}_{number}"):
            number += 1
        self._next_number[stem] = number + 1
        unique = f"{stem}_{number}"
        self._taken.add(unique)
        return unique

    def _number_after(self, stem: str) -> int:
        scope: NameScope | None = self
        while scope is not None:
            if stem in scope._next_number:
                return scope._next_number[stem]
            scope = scope._parent
        return 2
