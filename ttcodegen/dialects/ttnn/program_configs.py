"""Program configs of calls: `#ttnn.matmul_..._program_config<...>`.

The fields are those of the structures of tt-metal, in their order and with their defaults; field
names are spelled as tt-mlir prints them (`per_core_m` for `per_core_M`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from types import new_class
from typing import Any, ClassVar, TypeVar, cast, get_type_hints

from xdsl.dialects.builtin import UnregisteredAttr
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ttcodegen.dialects.operations.attribute_kinds import AttributeKind
from ttcodegen.dialects.ttcore.shards import CORE_RANGE, CoreRange, core_ranges_text

PROGRAM_CONFIGS = ("matmul_program_config", "program_config", "conv2d_config")
"""Properties of ops that hold a program config."""


@dataclass(frozen=True)
class CoreGrid:
    """Columns and rows of cores, from the first core."""

    columns: int
    rows: int

    @property
    def cores(self) -> int:
        """Number of cores."""
        return self.columns * self.rows

    def __str__(self) -> str:
        return f"#ttnn.core_coord<{self.columns}, {self.rows}>"


@dataclass(frozen=True)
class CoreSet:
    """A set of cores, as rectangles."""

    ranges: tuple[CoreRange, ...]

    def __str__(self) -> str:
        return core_ranges_text(self.ranges)


@dataclass(frozen=True)
class FusedActivation:
    """A unary op that is applied to results before they are packed."""

    op_type: str
    params: tuple[float, ...] = ()

    def __str__(self) -> str:
        if not self.params:
            return f"#ttnn.unary_with_param<op_type = {self.op_type}>"
        params = ", ".join(f"{value!r} : f32" for value in self.params)
        return f"#ttnn.unary_with_param<op_type = {self.op_type}, params = [{params}]>"


@dataclass(frozen=True)
class Word:
    """A bare word of an attribute, such as a data type or a layout."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class ProgramConfig:
    """Base of all program configs."""

    mnemonic: ClassVar[str]
    """Name of the attribute, without dialect."""
    cpp: ClassVar[str]
    """C++ structure."""
    header: ClassVar[str]
    """Header that declares it."""
    spelled: ClassVar[dict[str, str]] = {}
    """Fields with another name in C++."""
    unset: ClassVar[dict[str, str]] = {}
    """Fields of the structure that are never set, by the field that they follow."""

    printed: ClassVar[dict[str, str]] = {}
    """Fields with another name in MLIR."""
    always: ClassVar[tuple[str, ...]] = ()
    """Fields without a default in C++, which are written even if unset."""

    def __str__(self) -> str:
        words = [f"{self.printed.get(name, name)} = {_word(value)}" for name, value in self.given()]
        return f"<{', '.join(words)}>"

    @property
    def text(self) -> str:
        """The attribute as MLIR."""
        return f"#ttnn.{self.mnemonic}{self}"

    def given(self) -> Iterator[tuple[str, Any]]:
        """Yields the fields that are set."""
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                yield field.name, value

    @property
    def activation(self) -> FusedActivation | None:
        """Activation that is applied to the result."""
        return getattr(self, "fused_activation", None)

    def misfit(self) -> str | None:
        """Returns why the library refuses the config for any operands, or None."""
        grid = getattr(self, "compute_with_storage_grid_size", None)
        if isinstance(grid, CoreGrid) and (grid.columns < 1 or grid.rows < 1):
            return "its grid has no cores"
        return None


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


MATMUL_HEADER = "ttnn/operations/matmul/device/config/matmul_program_config_types.hpp"
_PER_CORE = {"per_core_m": "per_core_M", "per_core_n": "per_core_N"}
MOST_BANK_WORKERS = 3
"""Maximum number of cores that read a bank of DRAM."""
MOST_SUBBLOCK_TILES = 8
"""Maximum tiles of half the destination registers, with 16-bit elements."""


@dataclass(frozen=True)
class MatmulProgramConfig(ProgramConfig):
    """Program config of a matmul; block sizes are in tiles."""

    cpp: ClassVar[str]
    header: ClassVar[str] = MATMUL_HEADER
    spelled: ClassVar[dict[str, str]] = _PER_CORE

    def misfit(self) -> str | None:
        """Checks rules that hold for any operands (measured, tt-metal)."""
        found = super().misfit()
        if found is not None:
            return found
        for name, value in self.given():
            is_size = isinstance(value, int) and not isinstance(value, bool)
            if is_size and value < 1 and name not in ("num_global_cb_receivers",):
                return f"'{name}' is {value}"
        height, width = getattr(self, "out_subblock_h", 1), getattr(self, "out_subblock_w", 1)
        if height * width > 2 * MOST_SUBBLOCK_TILES:
            return f"a subblock of {height}x{width} tiles does not fit into the registers"
        block_h = getattr(self, "out_block_h", getattr(self, "per_core_m", height))
        block_w = getattr(self, "out_block_w", getattr(self, "per_core_n", width))
        if block_h % height or block_w % width:
            return f"subblocks of {height}x{width} tiles do not divide {block_h}x{block_w}"
        return None


@dataclass(frozen=True)
class MatmulReuse(MatmulProgramConfig):
    """Matmul program config in which each core computes whole matmuls of a batch."""

    mnemonic: ClassVar[str] = "matmul_multi_core_reuse_program_config"
    cpp: ClassVar[str] = "ttnn::operations::matmul::MatmulMultiCoreReuseProgramConfig"

    compute_with_storage_grid_size: CoreGrid
    in0_block_w: int
    out_subblock_h: int
    out_subblock_w: int
    per_core_m: int
    per_core_n: int


@dataclass(frozen=True)
class MatmulMultiCast(MatmulProgramConfig):
    """Matmul program config with left operands multicast along core rows, right ones along
    columns."""

    mnemonic: ClassVar[str] = "matmul_multi_core_reuse_multi_cast_program_config"
    cpp: ClassVar[str] = "ttnn::operations::matmul::MatmulMultiCoreReuseMultiCastProgramConfig"
    always: ClassVar[tuple[str, ...]] = ("fused_activation",)

    compute_with_storage_grid_size: CoreGrid
    in0_block_w: int
    out_subblock_h: int
    out_subblock_w: int
    out_block_h: int
    out_block_w: int
    per_core_m: int
    per_core_n: int
    transpose_mcast: bool = False
    fused_activation: FusedActivation | None = None
    fuse_batch: bool = True


@dataclass(frozen=True)
class MatmulMultiCast1D(MatmulProgramConfig):
    """Matmul program config with one operand multicast to all cores.

    The left operand if `mcast_in0`, else the right one.
    """

    mnemonic: ClassVar[str] = "matmul_multi_core_reuse_multi_cast_1d_program_config"
    cpp: ClassVar[str] = "ttnn::operations::matmul::MatmulMultiCoreReuseMultiCast1DProgramConfig"
    always: ClassVar[tuple[str, ...]] = ("fused_activation",)
    unset: ClassVar[dict[str, str]] = {"gather_in0": "hop_cores"}

    compute_with_storage_grid_size: CoreGrid
    in0_block_w: int
    out_subblock_h: int
    out_subblock_w: int
    out_block_h: int
    out_block_w: int
    per_core_m: int
    per_core_n: int
    fuse_batch: bool = True
    fused_activation: FusedActivation | None = None
    mcast_in0: bool = True
    gather_in0: bool = False
    num_global_cb_receivers: int = 0
    untilize_out: bool = False


@dataclass(frozen=True)
class MatmulDRAMSharded(MatmulProgramConfig):
    """Matmul program config of one tile row by a right operand width sharded over DRAM banks."""

    mnemonic: ClassVar[str] = "matmul_multi_core_reuse_multi_cast_dram_sharded_program_config"
    cpp: ClassVar[str] = (
        "ttnn::operations::matmul::MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig"
    )

    always: ClassVar[tuple[str, ...]] = ("fused_activation",)

    in0_block_w: int
    per_core_m: int
    per_core_n: int
    fused_activation: FusedActivation | None = None
    num_workers_per_dram_bank: int | None = None
    """Cores that read a bank; one if not set."""

    def misfit(self) -> str | None:
        """Checks rules that hold for any operands (measured, tt-metal)."""
        workers = self.num_workers_per_dram_bank
        if workers is not None and not 1 <= workers <= MOST_BANK_WORKERS:
            return f"'num_workers_per_dram_bank' is {workers}, not 1 to {MOST_BANK_WORKERS}"
        return super().misfit()


@dataclass(frozen=True)
class LayerNormSharded(ProgramConfig):
    """Program config of a norm with rows distributed over cores; sizes are in tiles."""

    mnemonic: ClassVar[str] = "layernorm_sharded_multicore_program_config"
    cpp: ClassVar[str] = "ttnn::prim::LayerNormShardedMultiCoreProgramConfig"
    header: ClassVar[str] = "ttnn/operations/normalization/layernorm/device/layernorm_types.hpp"

    compute_with_storage_grid_size: CoreGrid
    subblock_w: int
    block_h: int
    block_w: int
    inplace: bool = False

    def misfit(self) -> str | None:
        """Checks rules that hold for any operands (measured, tt-metal)."""
        found = super().misfit()
        if found is not None:
            return found
        if min(self.subblock_w, self.block_h, self.block_w) < 1:
            return "a block without tiles"
        if self.block_w % self.subblock_w:
            return f"subblocks of {self.subblock_w} tiles do not divide {self.block_w}"
        return None


@dataclass(frozen=True)
class SDPA(ProgramConfig):
    """Chunk sizes of attention: rows of queries and of keys per step."""

    mnemonic: ClassVar[str] = "sdpa_program_config"
    cpp: ClassVar[str] = "ttnn::operations::transformer::SDPAProgramConfig"
    header: ClassVar[str] = "ttnn/operations/transformer/sdpa_config.hpp"
    unset: ClassVar[dict[str, str]] = {"compute_with_storage_grid_size": "sub_core_grids"}

    compute_with_storage_grid_size: CoreGrid
    q_chunk_size: int
    k_chunk_size: int
    exp_approx_mode: bool | None = None
    max_cores_per_head_batch: int | None = None
    max_k_splits: int | None = None
    """Maximum number of parts of the keys that cores share; one if not set."""

    def misfit(self) -> str | None:
        """Checks rules that hold for any operands (measured, tt-metal)."""
        for name in ("q_chunk_size", "k_chunk_size"):
            if getattr(self, name) < 0 or getattr(self, name) % 32:
                return f"'{name}' is {getattr(self, name)}, no multiple of 32"
        return super().misfit()


@dataclass(frozen=True)
class Conv2dConfig(ProgramConfig):
    """Config of a convolution: activation, weights and sharding."""

    mnemonic: ClassVar[str] = "conv2d_config"
    cpp: ClassVar[str] = "ttnn::prim::Conv2dConfig"
    header: ClassVar[str] = "ttnn/operations/conv/conv2d/device/conv2d_device_operation_types.hpp"
    spelled: ClassVar[dict[str, str]] = {"fused_activation": "activation"}
    printed: ClassVar[dict[str, str]] = {"fused_activation": "activation"}
    always: ClassVar[tuple[str, ...]] = ("shard_layout",)
    words: ClassVar[dict[str, tuple[str, ...]]] = {
        "weights_dtype": ("bf16", "f32", "bfp_bf8", "bfp_bf4"),
        "shard_layout": ("height_sharded", "width_sharded", "block_sharded"),
        "output_layout": ("tile", "row_major"),
    }
    """Allowed words."""

    weights_dtype: Word | None = None
    fused_activation: FusedActivation | None = None
    deallocate_activation: bool | None = None
    reallocate_halo_output: bool | None = None
    config_tensors_in_dram: bool | None = None
    act_block_h_override: int | None = None
    act_block_w_div: int | None = None
    reshard_if_not_optimal: bool | None = None
    override_sharding_config: bool | None = None
    shard_layout: Word | None = None
    core_grid: CoreSet | None = None
    transpose_shards: bool | None = None
    output_layout: Word | None = None
    enable_act_double_buffer: bool | None = None
    enable_weights_double_buffer: bool | None = None
    enable_kernel_stride_folding: bool | None = None

    def misfit(self) -> str | None:
        """Checks rules that hold for any operands (measured, tt-metal)."""
        for name, words in self.words.items():
            word = getattr(self, name)
            if word is not None and word.text not in words:
                return f"'{name}' is {word}, not one of {', '.join(words)}"
        for name, value in self.given():
            if isinstance(value, int) and value < 0:
                return f"'{name}' is {value}"
        if (self.act_block_h_override or 0) % 32:
            return f"'act_block_h_override' is {self.act_block_h_override}, no multiple of 32"
        if self.override_sharding_config and self.core_grid is None:
            return "'override_sharding_config' needs a 'core_grid'"
        return super().misfit()


# The text

_COORDINATES = re.compile(r"\D*(\d+)\s*[,x]\s*(\d+)\D*")
_OTHER_CORES = re.compile(r"\w+(?<!\bttnn)(?<!\bcore_range_set)\b")
"""Words that remain in the text of a core set without its ranges, if it is invalid."""
_OP_TYPE = re.compile(r"op_type\s*=\s*(?:#ttnn\.unary_op_type<\s*)?(\w+)")
_PARAMS = re.compile(r"params\s*=\s*\[([^\]]*)\]")


def _value(parser: AttrParser, hint: object) -> object:
    """Parses the value of a field of that type."""
    text = str(hint)
    if "CoreGrid" in text:
        found = _COORDINATES.fullmatch(_nested(parser))
        if found is None:
            parser.raise_error("expected a grid of cores, as #ttnn.core_coord<8, 8>")
        return CoreGrid(int(found[1]), int(found[2]))
    if "CoreSet" in text:
        nested = _nested(parser)
        if _OTHER_CORES.search(CORE_RANGE.sub("", nested)) is not None:
            parser.raise_error(
                "expected a set of cores, as #ttnn.core_range_set<[#ttnn.core_range<(0,0), (7,3)>]>"
            )
        ranges = CORE_RANGE.findall(nested)
        return CoreSet(tuple(CoreRange(*map(int, found)) for found in ranges)) if ranges else None
    if "FusedActivation" in text:
        if (quoted := parser.parse_optional_str_literal()) is not None:
            return FusedActivation(quoted) if quoted else None
        return activation_of(_nested(parser))
    if "Word" in text:
        word = parser.parse_optional_identifier()
        return Word(word if word is not None else _nested(parser).strip("<> "))
    return parser.parse_boolean() if "bool" in text else parser.parse_integer()


def activation_of(text: str) -> FusedActivation:
    """Parses an activation such as `<op_type = silu, params = [1.0 : f32]>`.

    Raises:
        ValueError: if there is none.
    """
    name = _OP_TYPE.search(text)
    if name is None:
        raise ValueError(f"'{text}' names no unary op")
    params = _PARAMS.search(text)
    values = [word.partition(":")[0].strip() for word in params[1].split(",")] if params else []
    return FusedActivation(name[1], tuple(float(value) for value in values if value))


def _nested(parser: AttrParser) -> str:
    """Returns the text of a nested attribute, with or without its name."""
    if parser.parse_optional_punctuation("<") is not None:
        start, depth = parser.pos, 1
        content = parser.lexer.input.content
        end = start
        while depth and end < len(content):
            depth += {"<": 1, ">": -1}.get(content[end], 0)
            end += 1
        parser._resume_from(end)  # pyright: ignore[reportPrivateUsage]
        return content[start : end - 1]
    attribute = parser.parse_attribute()
    return attribute.value.data if isinstance(attribute, UnregisteredAttr) else str(attribute)


Config = TypeVar("Config", bound=ProgramConfig)


def parse_config(parser: AttrParser, config: type[Config]) -> Config:
    """Parses the fields of a config in angle brackets."""
    hints = get_type_hints(config)
    if config is Conv2dConfig:
        hints["activation"] = hints["fused_activation"]
    known = [field.name for field in fields(config)]
    found: dict[str, Any] = {}
    with parser.in_angle_brackets():
        while (name := parser.parse_optional_identifier()) is not None:
            position = parser.pos
            parser.parse_punctuation("=")
            if name == "hop_cores":
                if _nested(parser).strip("<>[] "):
                    parser.raise_error("cores that are hopped over are not supported", position)
            elif name not in (*known, *hints) or name in found:
                parser.raise_error(f"#ttnn.{config.mnemonic} has no other '{name}'", position)
            else:
                found[name] = _value(parser, hints[name])
            if parser.parse_optional_punctuation(",") is None:
                break
    if "activation" in found:
        found["fused_activation"] = found.pop("activation")
    if config is MatmulMultiCast or config is MatmulMultiCast1D:
        # Older texts have one block per core.
        found.setdefault("out_block_h", found.get("per_core_m"))
        found.setdefault("out_block_w", found.get("per_core_n"))
    try:
        made = config(**found)
    except TypeError:
        missing = ", ".join(sorted(set(known) - set(found)))
        parser.raise_error(f"#ttnn.{config.mnemonic} lacks one of {missing}")
    if (misfit := made.misfit()) is not None:
        parser.raise_error(f"no program can have this configuration: {misfit}")
    return made


# The attributes


class ProgramConfigAttr(Data[ProgramConfig]):
    """Attribute with a program config."""

    config: ClassVar[type[ProgramConfig]]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ProgramConfig:
        return parse_config(parser, cls.config)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(str(self.data))


def _attribute_class(config: type[ProgramConfig]) -> type[ProgramConfigAttr]:
    """Returns the attribute class of a kind of config, with tt-mlir's name."""
    members = {"name": f"ttnn.{config.mnemonic}", "config": config, "__module__": __name__}
    return irdl_attr_definition(
        new_class(
            f"{config.__name__}Attr", (ProgramConfigAttr,), exec_body=lambda ns: ns.update(members)
        )
    )


PROGRAM_CONFIG_ATTRIBUTES = tuple(
    _attribute_class(config)
    for config in (
        MatmulReuse,
        MatmulMultiCast,
        MatmulMultiCast1D,
        MatmulDRAMSharded,
        LayerNormSharded,
        SDPA,
        Conv2dConfig,
    )
)
"""All attributes of program configs."""

_BY_CONFIG = {attribute.config: attribute for attribute in PROGRAM_CONFIG_ATTRIBUTES}


def config_attribute(config: ProgramConfig) -> ProgramConfigAttr:
    """Returns the attribute of a config."""
    return _BY_CONFIG[type(config)](config)


def config_of_text(text: str) -> ProgramConfig:
    """Parses a config.

    Raises:
        ValueError: if the text is no program config.
    """
    from xdsl.context import Context
    from xdsl.parser import Parser
    from xdsl.utils.exceptions import ParseError

    context = Context(allow_unregistered=True)
    for attribute in PROGRAM_CONFIG_ATTRIBUTES:
        context.load_attr_or_type(attribute)
    try:
        found = Parser(context, text).parse_attribute()
    except ParseError as error:
        raise ValueError(error.msg) from error
    if not isinstance(found, ProgramConfigAttr):
        raise ValueError(f"'{text}' is no program configuration")
    return found.data


def _decoder(kinds: tuple[type[ProgramConfig], ...]) -> Any:
    def decode(attribute: Attribute) -> ProgramConfig:
        data = cast("object", getattr(attribute, "data", None))
        if isinstance(data, kinds):
            return data
        raise TypeError

    return decode


MATMUL_CONFIG = AttributeKind[ProgramConfig](
    "a program configuration of a matmul", _decoder((MatmulProgramConfig,)), config_attribute
)
NORM_CONFIG = AttributeKind[ProgramConfig](
    "a program configuration of a normalisation", _decoder((LayerNormSharded,)), config_attribute
)
CONV2D_CONFIG = AttributeKind[ProgramConfig](
    "a #ttnn.conv2d_config", _decoder((Conv2dConfig,)), config_attribute
)
SDPA_CONFIG = AttributeKind[ProgramConfig](
    "a #ttnn.sdpa_program_config", _decoder((SDPA,)), config_attribute
)
