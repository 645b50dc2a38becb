"""What templates say of a program of the device: pieces of C++, and how often which is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class BufferText:
    """A circular buffer of a program."""

    name: str
    """The constant with its number."""
    tensor: str
    """The tensor whose shards hold it; empty for none."""
    index: int
    format: str
    pages: str
    page_size: str


@dataclass(frozen=True)
class KernelText:
    """A kernel of a program."""

    variable: str
    file: str
    purpose: str
    """A comment on what it does."""
    general_purpose: str
    """The same for any program."""
    is_compute: bool
    config: str
    """The type of its configuration."""
    cores: str
    """Where it runs; empty for all cores of the program."""
    named: Sequence[tuple[str, str]]
    """Its compile-time arguments: names as literals, and values."""
    semaphores: Sequence[str]
    unpack_to_fp32: Sequence[str]
    accessors: str
    """Addresses of the tensors that it has accessors of, as arguments."""
    tensors: Sequence[str]
    """These tensors, each once."""
    uses_variant: bool = False
    """True if it differs between programs of a kind."""


@dataclass(frozen=True)
class ArgumentRow:
    """The run-time arguments of a kernel."""

    kernel: str
    """Its variable."""
    values: Sequence[str]


@dataclass(frozen=True)
class ArgumentLoop:
    """A loop over cores that sets run-time arguments."""

    kind: str
    """`work`, `grid` or `all`: how arguments depend on the core."""
    cores: str
    rows: Sequence[ArgumentRow]


@dataclass(frozen=True)
class MadeTensor:
    """A tensor that the function makes which runs a program."""

    name: str
    arguments: str
    """Those of what creates it."""


@dataclass(frozen=True, kw_only=True)
class ProgramText:
    """A program."""

    name: str
    head: Sequence[str]
    """Comments on what it computes, and what that takes."""
    computes: str
    """The first of them."""
    operands: Sequence[str]
    """What its tensors are called."""
    used_to_build: frozenset[str]
    """Those that say where they are when the program is built."""
    cores: str
    work_units: int
    """How many units of linear work are divided among the cores; 0 for none."""
    work: str
    """The constant with their number."""
    buffers: Sequence[BufferText]
    constants: Sequence[tuple[str, str]]
    """Compile-time arguments that mean one thing in all kernels, and their values."""
    semaphores: Sequence[tuple[str, int]]
    """Their names and initial values."""
    kernels: Sequence[KernelText]
    loops: Sequence[ArgumentLoop]
    uses_noc: bool
    """True if run-time arguments are positions on the NoC."""
    has_kernel_functions: bool
    """True if each kernel is created by a function of its own."""
    made: Sequence[MadeTensor] = ()
    taken: Sequence[str] = ()
    """The operands that the function takes which runs it."""
    returned: str = ""
    """The type of what that function returns."""
    variant: Sequence[tuple[str, str]] = ()
    """What distinguishes it from others of its kind: fields and values."""
    variant_in_arguments: bool = False
    """True if the run-time arguments of programs of a kind differ."""

    @property
    def aliases(self) -> list[BufferText]:
        """The circular buffers in shards of tensors."""
        return [buffer for buffer in self.buffers if buffer.tensor]


@dataclass(frozen=True)
class WrittenTensor:
    """A tensor that a call of `ttnn::generic_op` makes."""

    name: str
    shape: str
    data_type: str
    memory: str


@dataclass(frozen=True, kw_only=True)
class CalledText(ProgramText):
    """A program that `ttnn::generic_op` runs."""

    tensors: Sequence[str]
    """In the order of the call."""
    read: Sequence[str]
    written: Sequence[WrittenTensor]
    fidelity: str
    fp32_destination: str
    approximate: str
