"""Argument and result attributes of TTIR functions: names and parameter roles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.dialects.ttcore.dialect import ArgumentType, ArgumentTypeAttr
from ttcodegen.dialects.ttir.sharding import SHARDING
from ttcodegen.frontends.stablehlo.meshes import NamedMesh
from ttcodegen.frontends.stablehlo.reading.names import argument_name, is_meaningful, is_weight_name

_NAME = "ttir.name"
_KIND = "ttcore.argument_type"
_WEIGHT_TYPE = "ttcore.weight_dtype"
_RESULT = "jax.result_info"


def argument_attributes(
    source: FuncOp,
    arguments: Sequence[SSAValue],
    known: Mapping[SSAValue, Mapping[str, str]],
    mesh: NamedMesh,
) -> list[DictionaryAttr]:
    """Names, kinds and shardings of the arguments: as attributes say, or the program itself, or
    locations."""
    made: list[DictionaryAttr] = []
    for index, (old, new) in enumerate(zip(source.body.block.args, arguments, strict=True)):
        given = _dictionary(source.arg_attrs, index)
        found: dict[str, Attribute] = {
            name: value for name, value in given.items() if name in (_NAME, _KIND, _WEIGHT_TYPE)
        }
        _add_sharding(found, given, mesh, old.type, new.type)
        for name, text in known.get(new, {}).items():
            kind = _kind(text) if name == _KIND else StringAttr(text)
            if kind is not None:
                found.setdefault(name, kind)
        if _NAME not in found and not is_meaningful(old.name_hint):
            name = argument_name(getattr(old, "location", None))
            if name is not None:
                found[_NAME] = StringAttr(name)
        name = found.get(_NAME)
        if _KIND not in found and isinstance(name, StringAttr) and is_weight_name(name.data):
            if str(element_of(new.type)).startswith(("f", "bf")):
                found[_KIND] = ArgumentTypeAttr(ArgumentType.PARAMETER)
        made.append(DictionaryAttr(found))
    return made


def said_sharding(given: Mapping[str, Attribute]) -> Attribute | None:
    """Sharding declared by a value's attributes, or None."""
    return given.get("sdy.sharding", given.get("mhlo.sharding"))


def _add_sharding(
    found: dict[str, Attribute],
    given: Mapping[str, Attribute],
    mesh: NamedMesh,
    old: Attribute,
    new: Attribute,
) -> None:
    """Adds how a value should be divided, if it is said; of one whose parts are apart it is not."""
    if mesh.chips > 1 and shape_of(old) == shape_of(new):
        wanted = mesh.wanted(said_sharding(given), len(shape_of(new)))
        if wanted is not None:
            found[SHARDING] = wanted.attribute()


def donated_arguments(source: FuncOp) -> Iterator[int]:
    """The indices of arguments whose memory jax's caller gives up (`donate_argnums`)."""
    for index in range(len(source.body.block.args)):
        given = _dictionary(source.arg_attrs, index)
        donor = given.get("jax.buffer_donor")
        if "tf.aliasing_output" in given or (isinstance(donor, IntegerAttr) and donor.value.data):
            yield index


def _kind(text: str) -> Attribute | None:
    try:
        return ArgumentTypeAttr(ArgumentType(text))
    except ValueError:
        return None


def result_attributes(
    source: FuncOp, results: Sequence[SSAValue], mesh: NamedMesh
) -> list[DictionaryAttr]:
    """Names of the results, as attributes say or by the position in jax's tree of results, and
    their shardings."""
    made: list[DictionaryAttr] = []
    declared = source.function_type.outputs.data
    for index, (old, new) in enumerate(zip(declared, results, strict=False)):
        given = _dictionary(source.res_attrs, index)
        name = given.get(_NAME)
        info = given.get(_RESULT)
        if name is None and isinstance(info, StringAttr):
            name = _result_name(info.data)
        found: dict[str, Attribute] = {} if name is None else {_NAME: name}
        _add_sharding(found, given, mesh, old, new.type)
        made.append(DictionaryAttr(found))
    return made


def _result_name(info: str) -> Attribute | None:
    """`result['logits']` is `logits`; a number alone is no name."""
    from xdsl.dialects.builtin import NameLoc, NoneAttr

    name = argument_name(NameLoc(StringAttr(info), NoneAttr()))
    if name is None or "[" not in info:
        return None
    name = name.removeprefix("result").strip(".")
    return StringAttr(name) if name and not name[0].isdigit() else None


def _dictionary(dictionaries: ArrayAttr[DictionaryAttr] | None, index: int) -> dict[str, Attribute]:
    if dictionaries is None or index >= len(dictionaries.data):
        return {}
    return dict(dictionaries.data[index].data)
