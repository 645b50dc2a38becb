"""Translation of a program's calls to the Python package of ttnn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from xdsl.dialects.func import FuncOp

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttnn.program_configs import (
    Conv2dConfig,
    Word,
)
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.modules import module_of
from ttcodegen.judging.call_json import (
    Json,
    Step,
    config_json,
    memory_json,
    type_json,
)
from ttcodegen.ops.elementwise.activations import ACTIVATION_PARAMETERS
from ttcodegen.optimizer.call import LibraryCall
from ttcodegen.optimizer.overrides.overrides import CallNames
from ttcodegen.optimizer.rewrites import elementwise
from ttcodegen.transforms.rewriting import body_of

# The calls of a program as the Python package of ttnn takes them: which operands and attributes.
#
# The names of the keywords are those of the bindings of tt-metal.

_CARRIERS = {
    DataType.UINT32: DataType.UINT32,
    **dict.fromkeys((DataType.INT32, DataType.UINT16, DataType.UINT8), DataType.INT32),
}
"""Types of numpy arrays that integers come in; floats come in float32."""

Source = int | str | Callable[[Step], Json]
"""Source of an argument: an operand's index, an attribute's name, or a derived value."""


@dataclass(frozen=True)
class PythonCall:
    """Python call: positional arguments, and keyword arguments, which are omitted if absent."""

    positional: tuple[Source, ...] = ()
    keywords: Mapping[str, Source] = field(default_factory=dict[str, Source])
    callee: str = ""
    """Callee, if it differs from the op's name."""

    def written(self, step: Step) -> tuple[str, list[Json], dict[str, Json]]:
        """Function, positional and keyword arguments."""
        named = {key: _value(step, source) for key, source in self.keywords.items()}
        return (
            self.callee or step.call.name,
            [_value(step, source) for source in self.positional],
            {key: value for key, value in named.items() if value is not None},
        )


def _value(step: Step, source: Source) -> Json:
    if isinstance(source, int):
        return step.operand(source)
    return step[source] if isinstance(source, str) else source(step)


def _memory(step: Step) -> Json:
    """Memory config of the result, None to omit it."""
    return step.memory


def _required_memory(step: Step) -> Json:
    """Memory config of the result, always passed."""
    return {"memory": memory_json(step.call.result)}


def _compute(step: Step) -> Json:
    return step.compute


def _config(step: Step) -> Json:
    return step.config


def _device(step: Step) -> Json:
    return {"device": None}


def _page(step: Step) -> Json:
    return {"page": step.call.result.layout.value}


def _result_type(step: Step) -> Json:
    return {"dtype": step.call.result.data_type.mlir}


def _requested_type(step: Step) -> Json:
    """Data type that the call requests, None if it requests none."""
    return None if step["dtype"] is None else {"dtype": step["dtype"].mlir}


def _flag(name: str) -> Callable[[Step], bool]:
    return lambda step: bool(step[name])


def _tensor_or_number(place: int, attribute: str) -> Callable[[Step], Json]:
    """Operand at an index, else a numeric attribute."""

    def source(step: Step) -> Json:
        tensor = step.operand(place)
        return float(step[attribute]) if tensor is None else tensor

    return source


def _first_group(step: Step) -> Json:
    return step.groups[0]


def _result_shape(step: Step) -> Json:
    return list(step.call.result.shape)


def _filled(step: Step) -> PythonCall:
    """Tensors of one number as programs make them: zeros, ones, or zeros that are filled; bytes
    are filled as integers."""
    number = step["fill_value"]
    if number in (0, 1):
        return PythonCall((_result_shape,), _CREATED, "ones" if number else "zeros")
    result = step.call.result
    is_byte = result.data_type is DataType.UINT8
    number = float(number) if result.data_type.is_float else int(number)

    def zeros(step: Step) -> Json:
        made: dict[str, Json] = {key: _value(step, source) for key, source in _CREATED.items()}
        if is_byte:
            made["dtype"] = {"dtype": DataType.INT32.mlir}
        return {"call": ["zeros", [_result_shape(step)], made]}

    if not is_byte:
        return PythonCall((zeros, lambda step: number), {}, "fill")

    def filled(step: Step) -> Json:
        return {"call": ["fill", [zeros(step), number], dict[str, Json]()]}

    return PythonCall((filled, _result_type), {}, "typecast")


def _from_host(step: Step) -> PythonCall:
    """Tensors on the host of the elements that programs read from a file."""
    result = step.call.result
    carrier = _CARRIERS.get(result.data_type, DataType.FLOAT32)
    array: Json = {"array": [list(result.shape), carrier.name.lower()]}
    if carrier is result.data_type:
        return PythonCall((lambda step: array,), {}, "Tensor")
    made: Json = {"call": ["Tensor", [array], dict[str, Json]()]}
    return PythonCall((lambda step: made, _result_type), {}, "to_dtype")


def _amounts(step: Step) -> Json:
    """Padding pairs (before, after) by dimension."""
    flat = step["padding"]
    return [{"pair": list(pair)} for pair in zip(flat[::2], flat[1::2], strict=True)]


def _shared(step: Step) -> Json:
    return True if step["share_cache"] else None


def _reduction(step: Step) -> Json:
    """Reduction of a scatter, None for replacement."""
    return {"sum": "add", "prod": "multiply"}.get(step["scatter_reduce_type"])


def _activations(attribute: str) -> Callable[[Step], Json]:
    """Activation list of an attribute; None if it names none."""

    def source(step: Step) -> Json:
        name = step[attribute]
        if name is None:
            return None
        return [{"activation": [name, list(ACTIVATION_PARAMETERS.get(name, ()))]}]

    return source


_CREATED: Mapping[str, Source] = {"dtype": _result_type, "layout": _page, "device": _device}
_IN_DRAM: Mapping[str, Source] = {
    **_CREATED,
    "memory_config": lambda step: {
        "memory": {"layout": "interleaved", "buffer": "dram", "shards": None}
    },
}
_PLACED: Mapping[str, Source] = {"memory_config": _memory}
_COMPUTED: Mapping[str, Source] = {**_PLACED, "compute_kernel_config": _compute}
_CONFIGURED: Mapping[str, Source] = {**_COMPUTED, "program_config": _config}
_UNARY = PythonCall((0,), _PLACED)
_BINARY = PythonCall(
    (0, _tensor_or_number(1, "scalar")),
    {
        "dtype": _requested_type,
        "activations": _activations("activation"),
        "input_tensor_a_activations": _activations("lhs_activation"),
        "input_tensor_b_activations": _activations("rhs_activation"),
        **_PLACED,
    },
)
_PRODUCT = PythonCall(
    (0, 1),
    {
        "bias": 2,
        "transpose_a": _flag("transpose_a"),
        "transpose_b": _flag("transpose_b"),
        "dtype": _requested_type,
        "activation": "activation",
        **_CONFIGURED,
    },
)
_NORM = PythonCall(
    (0,),
    {
        "epsilon": "epsilon",
        "weight": 1,
        "bias": 2,
        "residual_input_tensor": 3,
        **_CONFIGURED,
    },
)
_REDUCED = PythonCall((0,), {"dim": "dim_arg", "keepdim": _flag("keep_dim"), **_COMPUTED})
_ALONG = PythonCall((0,), {"dim": "dim", "keepdim": _flag("keep_dim"), **_PLACED})
_SUMMED_UP = PythonCall((0, "dim"), {"dtype": _requested_type})
_OF_ONE: Mapping[str, Source] = {
    "cur_pos_tensor": 4,
    "attention_sink": 5,
    "scale": "scale",
    **_CONFIGURED,
}
_PADDED = PythonCall((0, _amounts), {"value": "value", **_PLACED}, "pad")
_RESHAPED = PythonCall((0, "shape"), _PLACED, "reshape")
_IMAGE: Mapping[str, Source] = {
    name: name
    for name in (
        *("in_channels", "out_channels", "batch_size", "input_height", "input_width"),
        *("kernel_size", "stride", "padding", "dilation", "groups"),
    )
}
_CONVOLUTION: Mapping[str, Source] = {
    "input_tensor": 0,
    "weight_tensor": 1,
    "bias_tensor": 2,
    "device": _device,
    **_IMAGE,
    "dtype": _requested_type,
    "conv_config": _config,
    "compute_config": _compute,
    **_PLACED,
}
_PREPARATION: Mapping[str, Source] = {
    "device": _device,
    **_IMAGE,
    "input_memory_config": lambda step: {"memory": memory_json(step["image"])},
    "input_layout": lambda step: {"page": step["image"].layout.value},
    "input_dtype": lambda step: {"dtype": step["image"].data_type.mlir},
    "output_dtype": _requested_type,
    "conv_config": lambda step: config_json(
        step.call.program_config
        or Conv2dConfig(weights_dtype=Word(step.call.result.data_type.mlir))
    ),
    "compute_config": _compute,
}
_POOL: Mapping[str, Source] = {
    "input_tensor": 0,
    "batch_size": "batch_size",
    "input_h": "input_height",
    "input_w": "input_width",
    "channels": "channels",
    "kernel_size": "kernel_size",
    "stride": "stride",
    "padding": "padding",
    "ceil_mode": _flag("ceil_mode"),
    # By default the library leaves its result in L1, in shards.
    "memory_config": _required_memory,
}
_MAXIMUM: Mapping[str, Source] = {**_POOL, "dilation": "dilation"}

CALLS: Mapping[str, PythonCall | Callable[[Step], PythonCall]] = {
    **dict.fromkeys(elementwise(), _UNARY),
    **dict.fromkeys(
        """
        add subtract multiply divide maximum minimum eq ne lt le gt ge pow logical_and logical_or
        logical_xor remainder
        """.split(),
        _BINARY,
    ),
    **dict.fromkeys(
        """
        atan2 bitwise_and bitwise_or bitwise_xor logical_left_shift logical_right_shift
        bitwise_right_shift
        """.split(),
        PythonCall((0, 1), _PLACED),
    ),
    "where": PythonCall(
        (0, _tensor_or_number(1, "true_value"), _tensor_or_number(2, "false_value")), _PLACED
    ),
    "clamp_scalar": PythonCall((0, "min", "max"), _PLACED, "clamp"),
    "clamp_tensor": PythonCall((0, 1, 2), _PLACED, "clamp"),
    "typecast": PythonCall((0, _result_type), _PLACED),
    "elu": PythonCall((0,), {"alpha": "alpha", **_PLACED}),
    "leaky_relu": PythonCall((0, "parameter"), _PLACED),
    "selu": PythonCall((0,), {"scale": "scale", "alpha": "alpha", **_PLACED}),
    "div_trunc": PythonCall(
        (0, 1),
        {"fast_and_approximate_mode": lambda step: False, "rounding_mode": lambda step: "trunc"},
        "div",
    ),
    "clone": PythonCall((0,), _PLACED),
    **dict.fromkeys(("matmul", "linear"), _PRODUCT),
    **dict.fromkeys(("rms_norm", "layer_norm"), _NORM),
    "softmax": PythonCall((0, "dimension"), _COMPUTED),
    "batch_norm_inference": PythonCall(
        (0,),
        {
            "running_mean": 1,
            "running_var": 2,
            "weight": 3,
            "bias": 4,
            "eps": "epsilon",
            **_COMPUTED,
        },
        "batch_norm",
    ),
    **dict.fromkeys(("sum", "mean", "max", "min"), _REDUCED),
    "prod": _ALONG,
    "argmax": replace(
        _ALONG, keywords={**_ALONG.keywords, "use_multicore": _flag("use_multicore")}
    ),
    **dict.fromkeys(("cumsum", "cumprod"), _SUMMED_UP),
    "sort": PythonCall((0,), {"dim": "dim", "descending": _flag("descending"), **_PLACED}),
    "topk": PythonCall(
        (0, "k", "dim"), {"largest": _flag("largest"), "sorted": _flag("sorted"), **_PLACED}
    ),
    # Attention and caches.
    "scaled_dot_product_attention": PythonCall(
        (0, 1, 2),
        {"attn_mask": 3, "is_causal": _flag("is_causal"), "scale": "scale", **_CONFIGURED},
        "transformer.scaled_dot_product_attention",
    ),
    "scaled_dot_product_attention_decode": PythonCall(
        (0, 1, 2),
        {"is_causal": _flag("is_causal"), "attn_mask": 3, **_OF_ONE},
        "transformer.scaled_dot_product_attention_decode",
    ),
    "paged_scaled_dot_product_attention_decode": PythonCall(
        (0, 1, 2, 3),
        {"sliding_window_size": "sliding_window_size", **_OF_ONE},
        "transformer.paged_scaled_dot_product_attention_decode",
    ),
    "paged_update_cache": PythonCall(
        (0, 1),
        {
            "update_idxs_tensor": 2,
            "share_cache": _shared,
            "page_table": 3,
            "compute_kernel_config": _compute,
        },
        "experimental.paged_update_cache",
    ),
    "fill_cache": PythonCall((0, 1, "batch_offset")),
    "paged_fill_cache": PythonCall(
        (0, 1, 2),
        {"batch_idx_tensor": 3, "batch_idx": lambda step: 0, "compute_kernel_config": _compute},
        "experimental.paged_fill_cache",
    ),
    "rotary_embedding": PythonCall(
        (0, 1, 2, "token_index"),
        {"memory_config": _memory, "compute_kernel_config": _compute},
        "experimental.rotary_embedding",
    ),
    "nlp_create_qkv_heads_decode": PythonCall(
        (0,),
        {"num_heads": "num_heads", "num_kv_heads": "num_kv_heads"},
        "experimental.nlp_create_qkv_heads_decode",
    ),
    "nlp_concat_heads_decode": PythonCall(
        (0,), {"num_heads": "num_heads"}, "experimental.nlp_concat_heads_decode"
    ),
    "split_query_key_value_and_split_heads": PythonCall(
        (0,),
        {
            "kv_input_tensor": 1,
            "num_heads": "num_heads",
            "num_kv_heads": "num_kv_heads",
            "transpose_key": _flag("transpose_key"),
            **_PLACED,
        },
        "transformer.split_query_key_value_and_split_heads",
    ),
    "concatenate_heads": PythonCall((0,), _PLACED, "transformer.concatenate_heads"),
    # Creation.
    "full": _filled,
    "constant": _from_host,
    "arange": PythonCall(("start", "end", "step"), _IN_DRAM),
    "rand": PythonCall(
        (_result_shape,), {**_IN_DRAM, "low": "low", "high": "high", "seed": "seed"}
    ),
    "to_device": PythonCall((0, _device), {"memory_config": _required_memory}),
    # Movement.
    "bitcast": PythonCall((0, _result_type)),
    **dict.fromkeys(("reshape", "reshape_row_major"), _RESHAPED),
    **dict.fromkeys(("pad", "pad_row_major"), _PADDED),
    "repeat": PythonCall((0, "repeat_dimensions"), _PLACED),
    "repeat_interleave": PythonCall((0, "repeats", "dim"), _PLACED),
    **dict.fromkeys(
        ("permute", "permute_row_major"), PythonCall((0, "permutation"), _PLACED, "permute")
    ),
    "slice_static": PythonCall((0, "begins", "ends", "step"), _PLACED, "slice"),
    **dict.fromkeys(
        ("concat", "concat_row_major"),
        PythonCall((_first_group,), {"dim": "dim", **_PLACED}, "concat"),
    ),
    "gather": PythonCall((0, "dim", 1), _PLACED),
    "scatter": PythonCall((0, "dim", 1, 2), {"reduce": _reduction, **_PLACED}),
    "embedding": PythonCall((0, 1), _PLACED),
    "to_layout": PythonCall((0, _page), _PLACED),
    "to_memory_config": PythonCall((0, _required_memory)),
    "from_device": PythonCall((0,)),
    # Images.
    "conv2d": PythonCall((), _CONVOLUTION),
    "prepare_conv2d_weights": PythonCall(
        (),
        {
            **_PREPARATION,
            "weight_tensor": 0,
            "weights_format": lambda step: "OIHW",
            "has_bias": _flag("has_bias"),
        },
        "prepare_conv_weights",
    ),
    "prepare_conv2d_bias": PythonCall((), {**_PREPARATION, "bias_tensor": 0}, "prepare_conv_bias"),
    "conv_transpose2d": PythonCall((), {**_CONVOLUTION, "output_padding": "output_padding"}),
    "max_pool2d": PythonCall((), _MAXIMUM),
    "max_pool2d_with_indices": PythonCall(
        (), {**_MAXIMUM, "return_indices": lambda step: True}, "max_pool2d"
    ),
    "avg_pool2d": PythonCall(
        (),
        {
            **_POOL,
            "count_include_pad": _flag("count_include_pad"),
            "compute_kernel_config": _compute,
        },
    ),
    "upsample": PythonCall((0, "scale_factor")),
}


def steps(program: file.Program) -> list[Json]:
    """Arguments of a program, followed by its operations.

    Operations that are not judged have no callee and produce tensors of the right layout.
    """
    found = [_made([entry.tensor for entry in program.inputs], program)]
    for operation in program.operations:
        if operation.name == "ttnn.deallocate":
            tensor = {"tensor": operation.operands[0]}
            found.append(
                {"callee": "deallocate", "arguments": [tensor], "keywords": {}, "results": []}
            )
            continue
        made = _made(operation.results, program)
        step = Step(program, operation) if operation.callee is None else None
        written = None if step is None else _written(step)
        if written is not None:
            made["callee"], made["arguments"], made["keywords"] = written
        found.append(made)
    return found


def _written(step: Step) -> tuple[str, list[Json], dict[str, Json]] | None:
    """The call of a step in Python, None if it is not judged."""
    known = CALLS.get(step.call.name)
    if known is None:
        return None
    return (known if isinstance(known, PythonCall) else known(step)).written(step)


TAKE = "take"
"""Step whose results are tensors of other steps."""
NO_CALLS = (None, "deallocate", TAKE)
"""Callees of steps that call no library op."""


def joined_steps(programs: Sequence[file.Program]) -> list[list[Json]]:
    """Steps of consecutive programs on the same device.

    A program takes the tensors of programs that it calls as they are: prepared weights have a
    padding that their type lacks.
    """
    joined: list[list[Json]] = []
    outputs: dict[str, list[int]] = {}
    first = 0
    for program in programs:
        numbers = {tensor: first + tensor for tensor in range(len(program.tensors))}
        own = cast("list[dict[str, Json]]", _renumbered(steps(program), numbers))
        for step, operation in zip(own[1:], program.operations, strict=True):
            if operation.callee in outputs:
                given = outputs[operation.callee]
                step["callee"], step["arguments"] = TAKE, [{"tensor": each} for each in given]
        outputs[program.name] = [numbers[output.tensor] for output in program.outputs]
        joined.append(cast("list[Json]", own))
        first += len(program.tensors)
    return joined


def named_operations(
    binary: file.Binary,
) -> dict[tuple[str, str], tuple[file.Program, file.Operation]]:
    """Operations of a file by program and result name."""
    found: dict[tuple[str, str], tuple[file.Program, file.Operation]] = {}
    for function in module_of(binary).walk():
        if isinstance(function, FuncOp) and function.body.blocks:
            names = CallNames(function)
            program = binary.program(names.function)
            for operation, op in zip(program.operations, body_of(function).ops, strict=False):
                if op in names:
                    found[names.function, names[op]] = (program, operation)
    return found


_TENSORS = 1000
"""Limit on the tensors of one call."""


def steps_of_call(
    program: file.Program, operation: file.Operation, call: LibraryCall, number: int
) -> list[Json]:
    """Steps that create an operation's operands, call it in another form, and drop its tensors.

    Empty if it is not judged.

    Args:
        program: the program of the operation.
        operation: the operation.
        call: its form.
        number: index of the call, which offsets its tensor numbers.
    """
    tensors = dict.fromkeys([*operation.operands, *operation.results])
    given = dict(zip([*operation.operands, *operation.results],
                     [*call.operands, *call.results], strict=False))  # fmt: skip
    if call.name not in CALLS or len(given) < len(tensors) or len(tensors) > _TENSORS:
        return []
    numbers = {tensor: number * _TENSORS + place for place, tensor in enumerate(tensors)}

    def made(listed: Sequence[int]) -> dict[str, Json]:
        results = [{"id": numbers[t], "type": type_json(given[t])} for t in dict.fromkeys(listed)]
        return {"callee": None, "arguments": [], "keywords": {}, "results": results}

    step = Step(program, operation)
    step.call = call
    called = made(operation.results)
    written = _written(step)
    assert written is not None
    called["callee"], arguments, keywords = written
    called["arguments"], called["keywords"] = (
        _renumbered(each, numbers) for each in (arguments, keywords)
    )
    forgotten: list[Json] = [
        {
            "callee": "deallocate",
            "arguments": [{"tensor": each}],
            "keywords": {},
            "results": [],
        }
        for each in numbers.values()
    ]
    return [made(operation.operands), called, *forgotten]


def _renumbered(spec: Json, numbers: Mapping[int, int]) -> Json:
    """Renumbers the tensors of an argument."""
    if isinstance(spec, list):
        return [_renumbered(each, numbers) for each in cast("list[Json]", spec)]
    if isinstance(spec, dict):
        given = cast("dict[str, Json]", spec)
        return {
            key: numbers[value] if key in ("tensor", "id") else _renumbered(value, numbers)
            for key, value in given.items()
        }
    return spec


def _made(tensors: Sequence[int], program: file.Program) -> dict[str, Json]:
    results = [
        {"id": tensor, "type": type_json(program.tensors[tensor].type.placement)}
        for tensor in tensors
    ]
    return {"callee": None, "arguments": [], "keywords": {}, "results": results}
