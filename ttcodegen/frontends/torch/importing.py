"""Translation of a `torch.export` graph to a TTIR module.

The module does not import torch: it reaches torch through the objects of the graph.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    ModuleOp,
    NameLoc,
    NoneAttr,
    StringAttr,
    TensorType,
    UnknownLoc,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import shape_of, tensor_type
from ttcodegen.dialects.ttcore.dialect import ArgumentType, ArgumentTypeAttr
from ttcodegen.foundation.diagnostics import CompileError, Diagnostic, SourceLocation
from ttcodegen.frontends.special_functions import Complex, joined, parted
from ttcodegen.frontends.torch.complex_numbers import complex_number, is_known, translated
from ttcodegen.frontends.torch.graph import (
    CHECKS,
    REGION_RULES,
    Graph,
    Iterate,
    element_of_dtype,
    is_complex,
    location_of,
    operation_name,
    plain,
    refuse_unknown_size,
    source_of,
    tensor_array,
)
from ttcodegen.frontends.torch.rules import rule_of
from ttcodegen.frontends.translation import SourceOp
from ttcodegen.parsing.structure import counted
from ttcodegen.transforms.loops import outline_loop
from ttcodegen.transforms.rewriting import erase_dead

# torch's own classes are not known where it is not installed.
Node = Any
Tensor = Any

_REWRITE = "write it with other operations, or compute it before or after the model"
_DROPPED = frozenset({"device", "layout", "pin_memory", "memory_format", "dtype", "copy",
                      "non_blocking", "generator"})  # fmt: skip


@dataclass(frozen=True)
class Imported:
    """Model translated to TTIR."""

    module: ModuleOp
    weights: Mapping[str, np.ndarray]
    """Parameters by name in the state dictionary, which is also the argument's name."""
    inputs: Sequence[str]
    """Names of the other arguments: the example's tensors in order, then `buffers`."""
    buffers: Sequence[str]
    """Buffers that are arguments, as this model or one that shares them mutates them."""
    changed: Sequence[str]
    """Names of the arguments that the model mutates, as trailing results."""


def import_graph(
    program: Any, function: str, outputs: Sequence[str], state: Collection[str] = ()
) -> Imported:
    """Translates an exported program to a TTIR module.

    Args:
        program: a functionalized `torch.export.ExportedProgram`.
        function: name of the function.
        outputs: names of the results.
        state: buffers that are arguments although this program does not mutate them.

    Raises:
        CompileError: listing all operations that cannot be translated.
    """
    return _Importer(program).run(function, outputs, state)


class _Refused(Exception):
    """Refusal of an operation's operand or attribute, reported at the operation."""


class _Importer:
    def __init__(self, program: Any) -> None:
        self.program = program
        self.values: dict[str, Any] = {}
        self.block = Block()
        self.graph = Graph(self._insert)
        self.graph.make_loop = self._loop
        self._loops: list[FuncOp] = []
        self._function = ""
        self._made: list[Operation] = []
        self.findings: dict[tuple[str, str | None], list[SourceLocation | None]] = {}
        self.failed: set[str] = set()
        self._overwritten: Mapping[str, str] = {}

    def run(self, function: str, outputs: Sequence[str], state: Collection[str]) -> Imported:
        self._function = function
        signature = self.program.graph_signature
        specs = {spec.arg.name: spec for spec in signature.input_specs}
        changed = [s.target for s in signature.output_specs if _is_change(s)]
        self._overwritten = overwritten_by(self.program, specs)
        weights: dict[str, np.ndarray] = {}
        inputs: list[str] = []
        attributes: list[DictionaryAttr] = []
        returned: list[SSAValue] = []
        buffers: list[str] = []
        checked = _only_checked(self.program.graph.nodes)
        for node in _buffers_last(self.program.graph.nodes, specs, {*changed, *state}):
            if node.name in checked:
                continue
            if node.op == "placeholder":
                spec = specs[node.name]
                kind = spec.kind.name
                if kind == "TOKEN":
                    self.values[node.name] = None  # The order of effects, of which there are none.
                elif kind == "PARAMETER":
                    array = tensor_array(self.program.state_dict[spec.target])
                    weights[spec.target] = array
                    attributes.append(self._argument(node, spec.target, ArgumentType.PARAMETER))
                elif kind == "USER_INPUT":
                    if _tensor_type(node) is None:
                        self.values[node.name] = node.meta["val"]
                        continue
                    inputs.append(node.name)
                    attributes.append(self._argument(node, node.name, ArgumentType.INPUT))
                elif spec.target in changed or (spec.target in state and node.users):
                    inputs.append(spec.target)
                    buffers.append(spec.target)
                    attributes.append(self._argument(node, spec.target, ArgumentType.INPUT))
                else:
                    self._buffer(node, spec)
            elif node.op == "call_function":
                if node.target is not operator.getitem or node.users:
                    self._call(node)
            elif node.op == "get_attr":
                self._attribute(node, self.program.graph_module)
            elif node.op == "output":
                returned = self._outputs(node, signature.output_specs)
            else:
                self._refuse(node, f"'{node.op}' in an exported graph is not supported")
        self._raise()
        labels = [*outputs, *map(changed_label, changed)]
        _require_distinct(inputs, "arguments and buffers")
        _require_distinct(labels, "results")
        self.block.add_op(ReturnOp(*returned))
        module = self._module(function, attributes, returned, labels)
        return Imported(module, weights, inputs, buffers, changed)

    def _argument(self, node: Node, name: str, kind: ArgumentType) -> DictionaryAttr:
        type_ = _tensor_type(node)
        assert type_ is not None
        pairs = is_complex(node.meta["val"])
        if pairs:
            type_ = tensor_type(type_.element_type, [*shape_of(type_), 2])
        value = self.block.insert_arg(type_, len(self.block.args))
        value.name_hint = _hint(name)
        self.values[node.name] = parted(self.graph, value) if pairs else value
        return DictionaryAttr(
            {"ttcore.argument_type": ArgumentTypeAttr(kind), "ttir.name": StringAttr(name)}
        )

    def _buffer(self, node: Node, spec: Any) -> None:
        """Translates a buffer or a tensor that the model holds to a constant."""
        if not node.users:
            return
        held = self.program.state_dict.get(spec.target)
        if held is None:
            held = self.program.constants[spec.target]
        held = plain(held)
        if type(held).__name__ == "FakeTensor":
            self.failed.add(node.name)
            self._refuse(
                next((n for n in self.program.graph.nodes if source_of(n)), node),
                "torch.export keeps no values of the tensors that a function is differentiated by",
                "differentiate in the program that calls the model, or export the graph of "
                "torch.fx.experimental.proxy_tensor.make_fx",
            )
            return
        try:
            element = element_of_dtype(held.dtype)
        except CompileError as error:
            self.failed.add(node.name)
            self._refuse(node, f"'{spec.target}': {error}", error.diagnostics[0].remedy)
            return
        self.graph.origin = _origin(spec.target)
        array = tensor_array(held)
        if is_complex(held):
            parts = (self.graph.constant(array[..., i], element) for i in (0, 1))
            self.values[node.name] = Complex(*parts)
            return
        value = self.graph.constant(array, element)
        value.name_hint = _hint(spec.target)
        self.values[node.name] = value

    def _insert(self, op: Operation) -> None:
        self.block.add_op(op)
        self._made.append(op)

    def _call(self, node: Node) -> None:
        if any(each.name in self.failed for each in node.all_input_nodes):
            self.failed.add(node.name)
            return
        self._made.clear()
        try:
            self.values[node.name] = self._translated(node)
            self._verify(node)
        except _Refused:
            self.failed.add(node.name)
        except (CompileError, VerifyException) as error:
            self.failed.add(node.name)
            remedy = error.diagnostics[0].remedy if isinstance(error, CompileError) else None
            self._refuse(node, str(error), remedy)
        except Exception as error:  # What a rule did not expect concerns one operation alone.
            self.failed.add(node.name)
            said = (str(error).splitlines() or [""])[0]
            name = _spelled(*operation_name(node.target))
            self._refuse(node, f"the rule of '{name}' fails: {type(error).__name__}: {said}")

    def _attribute(self, node: Node, module: Any) -> None:
        """Translates an attribute of a module: a graph or a tensor."""
        held: Any = module
        for part in str(node.target).split("."):
            held = getattr(held, part)
        if hasattr(held, "graph"):
            self.values[node.name] = held
            return
        self.graph.origin = _origin(str(node.target))
        try:
            self.values[node.name] = self.graph.constant(
                tensor_array(held), element_of_dtype(held.dtype)
            )
        except CompileError as error:
            self.failed.add(node.name)
            self._refuse(node, str(error), error.diagnostics[0].remedy)

    def _with_effects(self, node: Node) -> Any:
        """Imports operations with effects in order; only checks are known to be pure."""
        name, _ = operation_name(node.args[1])
        if name not in CHECKS:
            raise CompileError(
                f"'{name}' has an effect, which a compiled program cannot have",
                remedy="leave it out, or do it in the program that calls the model",
            )
        return [None]

    def _of_regions(self, node: Node, name: str) -> Any:
        self.graph.origin = _origin(location_of(node))
        arguments = [self._value(each) for each in node.args]
        return REGION_RULES[name](self.graph, self._region, *arguments)

    def _region(self, module: Any, arguments: Sequence[Any]) -> list[Any]:
        """Translates the subgraph of a higher-order operation.

        Raises:
            _Refused: if an operation in it is refused.
        """
        outside = self.values, self.failed
        self.values, self.failed = {}, set()
        given = iter(arguments)
        returned: Any = ()
        try:
            for node in module.graph.nodes:
                if node.op == "placeholder":
                    self.values[node.name] = next(given)
                elif node.op == "get_attr":
                    self._attribute(node, module)
                elif node.op == "call_function":
                    if node.target is not operator.getitem or node.users:
                        self._call(node)
                elif not self.failed:
                    returned = self._value(node.args[0])
            if self.failed:
                raise _Refused
        finally:
            self.values, self.failed = outside
        return cast("list[Any]", returned) if isinstance(returned, list) else [returned]

    def _loop(
        self, going: SSAValue, carried: Sequence[SSAValue], iterate: Iterate
    ) -> Sequence[SSAValue]:
        """Outlines a loop whose trip count is known only at run time."""
        block = Block(arg_types=[value.type for value in carried])
        outside, self.block = self.block, block
        try:
            returned = iterate(block.args)
        finally:
            self.block = outside
        name = f"{self._function}_loop_{len(self._loops)}"
        found = outline_loop(name, block, going, carried, returned)
        origin = self.graph.origin
        if origin is not None:
            found.call.location = origin.location
        self.block.add_op(found.call)
        self._loops.append(found.function)
        return found.results

    def _verify(self, node: Node) -> None:
        """Verifies the ops of a translated operation; reports faults at that operation."""
        for op in self._made:
            try:
                op.verify(verify_nested_ops=False)
                for result in op.results:
                    if any(size < 0 for size in shape_of(result.type)):
                        raise VerifyException(f"{op.name}: a result of shape {result.type}")
            except VerifyException as error:
                said = str(error).strip().splitlines()[-1]
                name = _spelled(*operation_name(node.target))
                raise CompileError(
                    f"'{name}' of tensors and arguments like these is not supported ({said})",
                    remedy=_REWRITE,
                ) from None

    def _translated(self, node: Node) -> Any:
        if node.target is operator.getitem:
            values = self.values[node.args[0].name]
            index, made_by = node.args[1], operation_name(node.args[0].target)[0]
            if index >= len(values) or (values[index] is None and made_by != "with_effects"):
                raise CompileError(f"result {index} of {node.args[0].name} is not computed")
            return values[index]
        name, overload = operation_name(node.target)
        if name in CHECKS:
            return None
        if name == "with_effects":
            return self._with_effects(node)
        if name in REGION_RULES:
            return self._of_regions(node, name)
        empty = self._empty_results(node)
        if empty is not None:
            return empty
        if name in ("_local_scalar_dense", "item"):
            if all(operation_name(each.target)[0] == "select" for each in node.users):
                return self.values[node.args[0].name]  # x[i], where i is a tensor.
            raise CompileError(
                "the program depends on a number that is the value of a tensor",
                remedy="keep it a tensor: sizes and branches cannot depend on values",
            )
        rule = rule_of(name, overload)
        of_complex_numbers = any(
            is_complex(each.meta.get("val")) for each in (node, *node.all_input_nodes)
        )
        if rule is None and not of_complex_numbers:
            raise CompileError(
                f"there is no rule for the operation '{_spelled(name, overload)}'",
                remedy=_REWRITE,
            )
        self.graph.origin = _origin(location_of(node))
        self.graph.results = list(_result_types(node))
        self.graph.overwritten = self.values.get(self._overwritten.get(node.name, ""))
        arguments = [self._value(each) for each in node.args]
        named = {k: self._value(v) for k, v in node.kwargs.items() if k not in _DROPPED}
        try:
            if of_complex_numbers or rule is None:
                made = translated(self.graph, name, rule, arguments, named)
            else:
                made = rule(self.graph, *arguments, **named)
        except TypeError as error:
            if "argument" not in str(error):
                raise
            raise CompileError(
                f"'{_spelled(name, overload)}' with these arguments is not supported: {error}"
            ) from None
        return self._results(node, made)

    def _empty_results(self, node: Node) -> Any:
        """Empty results of an operation without output elements; None for other operations."""
        found: Any = node.meta["val"]
        several = isinstance(found, (tuple, list))
        values = cast("Sequence[Any]", found if several else [found])
        if not values or any(
            not hasattr(each, "shape")
            or is_complex(each)
            or not any(type(size) is int and size == 0 for size in each.shape)
            for each in values
        ):
            return None
        self.graph.origin = _origin(location_of(node))
        made = [self.graph.nothing(_type_of(each)) for each in values]
        return made if several else made[0]

    def _results(self, node: Node, made: Any) -> Any:
        """Value of a node: a rule's results in the types of the graph."""
        several = isinstance(node.meta["val"], (tuple, list))
        if isinstance(made, Complex) and not is_complex(node.meta["val"]):
            made = made.real  # A conversion to real numbers drops the other part.
        values: list[Any] = [made] if isinstance(made, SSAValue | Complex) else list(made)
        typed = [self._typed(v, t) for v, t in zip(values, self.graph.results, strict=False)]
        return typed if several else typed[0]

    def _typed(self, value: Any, type_: TensorType[Attribute]) -> Any:
        if value is None:
            return None  # A result that is not computed.
        if isinstance(value, Complex):
            self._typed(value.real, type_)
            return value
        if shape_of(value.type) != shape_of(type_):
            raise CompileError(
                f"expected a result of shape {shape_of(type_)}, found {shape_of(value.type)}"
            )
        return self.graph.typecast(value, type_.element_type)

    def _value(self, argument: Any) -> Any:
        if isinstance(argument, (list, tuple)):
            return [self._value(each) for each in cast("Sequence[Any]", argument)]
        if type(argument).__name__ == "Node":
            return self.values[argument.name]
        if hasattr(argument, "graph"):
            return argument
        if isinstance(argument, (bool, int, float, str)) or argument is None:
            return argument
        if isinstance(argument, complex):
            return complex_number(self.graph, argument)
        return None  # Types, devices and layouts: the graph says what comes of them.

    def _outputs(self, node: Node, specs: Sequence[Any]) -> list[SSAValue]:
        """Results of the model, followed by mutated arguments."""
        given = sorted(zip(node.args[0], specs, strict=True), key=lambda pair: _is_change(pair[1]))
        returned: list[SSAValue] = []
        for argument, spec in given:
            if spec.kind.name == "TOKEN":
                continue
            if spec.kind.name != "USER_OUTPUT" and not _is_change(spec):
                self._refuse(argument, f"results of the kind {spec.kind.name} are not supported")
            elif type(argument).__name__ == "Node" and argument.name not in self.failed:
                value: Any = self.values[argument.name]
                if isinstance(value, Complex):
                    value = joined(self.graph, value)
                if isinstance(value, SSAValue):
                    returned.append(cast("SSAValue", value))
        return returned

    def _refuse(self, node: Node, message: str, remedy: str | None = None) -> None:
        place = source_of(node) if hasattr(node, "meta") else None
        self.findings.setdefault((message, remedy or _REWRITE), []).append(place)

    def _raise(self) -> None:
        if self.findings:
            raise CompileError.from_diagnostics(
                [
                    Diagnostic(counted(message, len(places)), places[0], remedy)
                    for (message, remedy), places in self.findings.items()
                ]
            )

    def _module(
        self,
        name: str,
        arguments: Sequence[DictionaryAttr],
        returned: Sequence[SSAValue],
        outputs: Sequence[str],
    ) -> ModuleOp:
        types = ([a.type for a in self.block.args], [value.type for value in returned])
        results = [DictionaryAttr({"ttir.name": StringAttr(output)}) for output in outputs]
        function = FuncOp(
            name,
            types,
            Region(self.block),
            arg_attrs=ArrayAttr(arguments),
            res_attrs=ArrayAttr(results),
        )
        for each in (function, *self._loops):
            erase_dead(each)
        return ModuleOp([function, *self._loops])


def _only_checked(nodes: Any) -> set[str]:
    """Names of the operations whose results nothing but runtime checks read."""
    found: set[str] = set()
    for node in reversed(nodes):
        if node.op == "call_function" and node.users:
            users = ((user.name, operation_name(user.target)[0]) for user in node.users)
            if all(name in found or kind in CHECKS for name, kind in users):
                found.add(node.name)
    return found


def _is_change(spec: Any) -> bool:
    return spec.kind.name in ("BUFFER_MUTATION", "USER_INPUT_MUTATION")


def overwritten_by(program: Any, specs: Mapping[str, Any]) -> dict[str, str]:
    """Maps the nodes of mutated values to the arguments that they overwrite.

    Only arguments that nothing else reads.
    """
    nodes = {node.name: node for node in program.graph.nodes}
    targets = {
        (spec.target or name) if spec.kind.name != "USER_INPUT" else name: name
        for name, spec in specs.items()
    }
    found: dict[str, str] = {}
    for spec in program.graph_signature.output_specs:
        name = targets.get(spec.target) if _is_change(spec) else None
        if name is not None and [user.name for user in nodes[name].users] == [spec.arg.name]:
            found[spec.arg.name] = name
    return found


def changed_label(name: str) -> str:
    """Result name of a mutated buffer or argument."""
    return f"new.{name}"


def _require_distinct(names: Sequence[str], kind: str) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise CompileError(
            f"two {kind} of a model that changes them have one name: {', '.join(twice)}",
            remedy="rename the argument or the buffer",
        )


def _buffers_last(
    nodes: Sequence[Node], specs: Mapping[str, Any], arguments: Collection[str]
) -> list[Node]:
    """Orders the nodes of a graph: buffers that are arguments follow the other arguments."""

    def rank(node: Node) -> int:
        if node.op != "placeholder":
            return 2
        spec = specs[node.name]
        return int(spec.kind.name == "BUFFER" and spec.target in arguments)

    return sorted(nodes, key=rank)


def _spelled(name: str, overload: str) -> str:
    return f"{name}.{overload}" if overload not in ("", "default") else name


def _result_types(node: Node) -> Iterator[TensorType[Attribute]]:
    found: Any = node.meta["val"]
    several = isinstance(found, (tuple, list))
    for value in cast("Sequence[Any]", found if several else [found]):
        if hasattr(value, "shape"):
            given = [each.meta.get("val") for each in node.all_input_nodes]
            refuse_unknown_size(operation_name(node.target)[0], value, given)
            yield _type_of(value)


def has_complex_rule(node: Node) -> bool:
    """Returns whether an operation has complex operands and a rule for them."""
    given = [each for each in node.all_input_nodes if is_complex(each.meta.get("val"))]
    return bool(given) and is_known(operation_name(node.target)[0])


def _tensor_type(node: Node) -> TensorType[Attribute] | None:
    value = node.meta["val"]
    return _type_of(value) if hasattr(value, "shape") else None


def _type_of(value: Tensor) -> TensorType[Attribute]:
    shape: list[int] = []
    for size in value.shape:
        if not isinstance(size, int):
            raise CompileError(
                "tensors of unknown size are not supported",
                remedy="export the model without dynamic shapes",
            )
        shape.append(size)
    return tensor_type(element_of_dtype(value.dtype), shape)


def _hint(name: str) -> str | None:
    hint = re.sub(r"\W", "_", name)
    return hint if hint and not hint[0].isdigit() else None


def _origin(name: str) -> SourceOp:
    location = NameLoc(StringAttr(name), NoneAttr()) if name else UnknownLoc()
    return SourceOp.create(location=location)
