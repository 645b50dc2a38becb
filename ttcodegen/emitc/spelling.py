"""C++ spelling: types, numbers, strings, comments and identifiers."""

from __future__ import annotations

import math
import re
import struct
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    TupleType,
)
from xdsl.dialects.emitc import (
    EmitC_ArrayType,
    EmitC_LValueType,
    EmitC_OpaqueAttr,
    EmitC_OpaqueType,
    EmitC_PointerType,
    EmitC_PtrDiffT,
    EmitC_SignedSizeT,
    EmitC_SizeT,
    EmitCArrayElementType,
)
from xdsl.ir import Attribute, TypeAttribute

# Spelling of types, numbers, strings and comments in C++: functions of texts and attributes,
# independent of operations.


class Precedence(IntEnum):
    """Binding strength of C++ operators, weakest first (cppreference, "Operator Precedence")."""

    ASSIGNMENT = 1
    CONDITIONAL = 2
    LOGICAL_OR = 3
    LOGICAL_AND = 4
    BITWISE_OR = 5
    BITWISE_XOR = 6
    BITWISE_AND = 7
    EQUALITY = 8
    RELATIONAL = 9
    THREE_WAY = 10
    SHIFT = 11
    ADDITIVE = 12
    MULTIPLICATIVE = 13
    UNARY = 14
    POSTFIX = 15
    PRIMARY = 16


@dataclass(frozen=True, slots=True)
class Expression:
    """The text of a C++ expression and the precedence of its outermost operator."""

    text: str
    precedence: Precedence = Precedence.PRIMARY

    def at_least(self, precedence: Precedence) -> str:
        """The text, in parentheses if it binds weaker than `precedence`."""
        return self.text if self.precedence >= precedence else f"({self.text})"


_FIXED_TYPES: dict[str, TypeAttribute] = {
    "bool": IntegerType(1),
    **{f"int{width}_t": IntegerType(width) for width in (8, 16, 32, 64)},
    **{f"uint{width}_t": IntegerType(width, Signedness.UNSIGNED) for width in (8, 16, 32, 64)},
    "float": Float32Type(),
    "double": Float64Type(),
    "_Float16": Float16Type(),
    "__bf16": BFloat16Type(),
    "size_t": EmitC_SizeT(),
    "ssize_t": EmitC_SignedSizeT(),
    "ptrdiff_t": EmitC_PtrDiffT(),
}

_TYPE_TEXTS: dict[Attribute, str] = {
    **{type_: text for text, type_ in _FIXED_TYPES.items()},
    **{IntegerType(width, Signedness.SIGNED): f"int{width}_t" for width in (8, 16, 32, 64)},
    IndexType(): "size_t",
}

_CALL_LIKE = re.compile(r"[A-Za-z_][\w:]*(\([^()]*\)|\{[^{}]*\})?")
_NUMBER = re.compile(r"\d[\w.]*")
_PLAIN = re.compile(r"[ !#->@-\[\]-~]*")
"""Text that needs no escapes in a string literal."""
_CONTROL_OR_SPACE = re.compile(r"\s+")


@lru_cache(maxsize=4096)
def cpp_type(text: str) -> TypeAttribute:
    """EmitC type of a C++ spelling: `float` is f32, `T*` a pointer, others opaque."""
    text = text.strip()
    fixed = _FIXED_TYPES.get(text)
    if fixed is not None:
        return fixed
    if text.endswith("*"):
        return EmitC_PointerType(cpp_type(text[:-1]))
    return EmitC_OpaqueType(StringAttr(text))


def type_text(type_: Attribute) -> str | None:
    """C++ spelling of a type; None if it has none.

    An lvalue is spelled as its value type. Arrays need a declarator: see `declaration`."""
    text = _TYPE_TEXTS.get(type_)
    if text is not None:
        return text
    match type_:
        case EmitC_OpaqueType():
            return type_.value.data
        case EmitC_LValueType():
            return type_text(type_.value_type)
        case EmitC_PointerType():
            pointee = type_text(type_.pointee_type)
            return None if pointee is None else f"{pointee}*"
        case TupleType():
            texts = [type_text(element) for element in type_.types.data]
            known = [text for text in texts if text is not None]
            return f"std::tuple<{', '.join(known)}>" if len(known) == len(texts) else None
        case _:
            return None


def declaration(type_: Attribute, name: str) -> str | None:
    """Declaration `type name`, with array bounds after the name; None without spelling."""
    if isinstance(type_, EmitC_ArrayType):
        array = cast("EmitC_ArrayType[EmitCArrayElementType]", type_)
        element = type_text(array.element_type)
        bounds = "".join(f"[{extent}]" for extent in array.get_shape())
        return None if element is None else f"{element} {name}{bounds}"
    text = type_text(type_)
    return None if text is None else f"{text} {name}"


def attribute_value(attribute: Attribute) -> Expression | None:
    """The C++ value of a constant's attribute; None if it has none."""
    match attribute:
        case EmitC_OpaqueAttr():
            return opaque_value(attribute.value.data)
        case IntegerAttr():
            return integer_value(attribute.value.data, attribute.type)
        case FloatAttr():
            return float_value(attribute.value.data, double=isinstance(attribute.type, Float64Type))
        case DenseIntOrFPElementsAttr():
            return _elements_value(attribute)
        case _:
            return None


def opaque_value(text: str) -> Expression:
    """Piece of C++ as an expression, with lowest precedence unless it is a single token or call."""
    plain = _CALL_LIKE.fullmatch(text) or _NUMBER.fullmatch(text)
    return Expression(text, Precedence.PRIMARY if plain else Precedence.ASSIGNMENT)


def integer_value(value: int, type_: Attribute) -> Expression:
    """Integer constant in a type that converts to `type_` implicitly."""
    if isinstance(type_, IntegerType):
        width, signedness = _width_and_sign(cast(Attribute, type_))
        if width == 1:
            return Expression("true" if value else "false")
        if signedness is Signedness.UNSIGNED:
            value %= 1 << width
            suffix = "ull" if value >= 1 << 32 else "u" if width >= 32 else ""
            return Expression(f"{value}{suffix}")
    if value >= 1 << 63:
        return Expression(f"{value}ull")
    if value >= 0:
        return Expression(str(value))
    # The literal of the smallest number would not fit its type before the minus is applied.
    if value in (-(1 << 31), -(1 << 63)):
        return Expression(f"{value + 1} - 1", Precedence.ADDITIVE)
    return Expression(str(value), Precedence.UNARY)


def float_value(value: float, *, double: bool = False) -> Expression:
    """A floating-point constant in the shortest spelling that reads back as the same number.

    Args:
        value: the number; rounded to float32 first unless `double`.
        double: spell a `double`; a `float` otherwise (also for the 16-bit types).
    """
    limits = f"std::numeric_limits<{'double' if double else 'float'}>"
    if not double:
        value = _to_float32(value)
    if math.isnan(value):
        return Expression(f"{limits}::quiet_NaN()", Precedence.POSTFIX)
    negative = math.copysign(1.0, value) < 0
    if math.isinf(value):
        text = f"{limits}::infinity()"
        return (
            Expression(f"-{text}", Precedence.UNARY)
            if negative
            else Expression(text, Precedence.POSTFIX)
        )
    text = _tidy_exponent(repr(value) if double else _shortest_float32(value))
    text = text if double else f"{text}f"
    return Expression(text, Precedence.UNARY if negative else Precedence.PRIMARY)


def string_literal(text: str) -> str:
    """C++ string literal of a text in UTF-8; the literal itself is plain ASCII."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    pieces: list[str] = []
    for byte in text.encode("utf-8", "replace"):
        character = chr(byte)
        if character in '"\\?':
            # `\?` keeps two question marks from forming a trigraph.
            pieces.append("\\" + character)
        elif 0x20 <= byte < 0x7F:
            pieces.append(character)
        else:
            # Three octal digits: unlike \x, the escape cannot swallow a digit that follows.
            pieces.append({"\n": "\\n", "\t": "\\t"}.get(character, f"\\{byte:03o}"))
    return '"' + "".join(pieces) + '"'


def comment_line(text: str) -> str:
    """`// text` on one line, for any `text`."""
    # A backslash at the end would continue the comment, `??/` is one before C++17; bidirectional
    # controls make a reader see other code than the compiler.
    line = text.replace("\\", "/").replace("??/", "? ?/")
    line = "".join(c if c.isprintable() else " " for c in line)
    line = _CONTROL_OR_SPACE.sub(" ", line).strip()
    return f"// {line}" if line else "//"


def _width_and_sign(type_: Attribute) -> tuple[int, Signedness]:
    integer = cast("IntegerType[int, Signedness]", type_)
    return integer.width.data, integer.signedness.data


def _elements_value(attribute: DenseIntOrFPElementsAttr) -> Expression | None:
    element = attribute.get_element_type()
    double = isinstance(element, Float64Type)
    texts = [
        float_value(v, double=double).text
        if isinstance(v, float)
        else integer_value(v, element).text
        for v in attribute.get_values()
        if isinstance(v, int | float)
    ]
    count = math.prod(attribute.get_shape())
    if len(texts) == 1:
        texts *= count
    if len(texts) != count:
        return None
    for extent in reversed(attribute.get_shape()[1:]):
        texts = [
            "{" + ", ".join(texts[start : start + extent]) + "}"
            for start in range(0, len(texts), max(extent, 1))
        ]
    return Expression("{" + ", ".join(texts) + "}")


def _to_float32(value: float) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def _shortest_float32(value: float) -> str:
    decimals = (float(f"{value:.{digits}g}") for digits in range(1, 10))
    # Nine digits identify every float32, so there is one. `repr` puts its point where a person
    # would: 100.0, not 1e+02.
    return repr(next(decimal for decimal in decimals if _to_float32(decimal) == value))


def _tidy_exponent(text: str) -> str:
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if mark else text


# Pieces of C++ that do not come from names of the input.


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of C++ that is written verbatim."""

    text: str


# Names in the generated project: C++ identifiers, file names, and their uniqueness.
#
# Names come from the input (argument names, locations, module names) and may contain anything.
# Results are always identifiers that C++20 allows a program to use: no keyword, no reserved
# identifier ([lex.name]: a double underscore, a leading underscore and capital), no macro of the
# standard library.

_MAX_LENGTH = 64
"""Maximum length of names, for readable lines; the name scope keeps truncated names distinct."""

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
    """Returns whether `text` is an identifier that generated code may declare."""
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
        # The last words are the most specific: `..._layer_0_attention_query_weight`.
        while len(words) > 1 and len("_".join(words)) > _MAX_LENGTH:
            words.pop(0)
        name = "_".join(words)[:_MAX_LENGTH]
        if name[0].isdigit():
            name = f"{fallback}_{name}"[:_MAX_LENGTH]
        name = name.rstrip("_")
    # Macros are spelled in capitals; no list of them would be complete.
    if len(name) > 1 and not any(c.islower() for c in name) and any(c.isupper() for c in name):
        name = name.lower()
    if name in _KEYWORDS or name in _TAKEN_BY_LIBRARIES:
        name += "_"
    return name


def type_name(text: str, fallback: str = "Type") -> str:
    """C++ type name: `linear_relu_stack` -> `LinearReluStack`."""
    words = _words(_snake_case(text))
    name = "".join(word[0].upper() + word[1:] for word in words)
    if not name or name[0].isdigit():
        name = fallback + name
    return identifier(name, fallback)


def constant_name(text: str) -> str:
    """Name of a constant: `dram interleaved` -> `kDramInterleaved`."""
    return identifier("k" + "".join(w[0].upper() + w[1:] for w in _words(_snake_case(text))), "k")


def snake_case(text: str, fallback: str = "value") -> str:
    """Identifier in lower case with underscores: `MemoryConfig` -> `memory_config`."""
    return identifier(_snake_case(text), fallback)


def file_stem(text: str, fallback: str = "module") -> str:
    """File name without extension that is valid on all file systems, and an identifier."""
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
    """Generates names that are unique in a scope and its enclosing scopes.

    The numbers depend only on the order of the requests: `x`, `x_2`, `x_3`. A name of an inner
    scope is free again outside of it, as in C++."""

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
        """Returns whether `name` is used in this or an enclosing scope."""
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
