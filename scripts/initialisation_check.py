"""Finds operations of compute kernels that their initialisation does not precede, and full
initialisations where they break what is under way.

The emulated device finds the same where a kernel runs; here it is read off the kernel's text. A
fault is reported only if every way through the kernel that the text shows has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from scripts.initialisation_table import InitialisationTable, Step
from scripts.kernel_calls import Call, Choice, End, KernelText, Loop, Statements, flattened

ENGINES = {"unpack": "unpacking", "math": "math", "pack": "packing"}
_PASSES = 2
"""Passes over the body of a loop: the second one finds the state that the first one left."""
_ACQUIRES = {"tile_regs_acquire": "math", "acquire_dst": "math", "tile_regs_commit": "packing"}
_RELEASES = frozenset({"tile_regs_release", "release_dst"})
_UNKNOWN_INIT = re.compile(
    r"(^|_)(init|(un)?tilize|reduce|matmul|bcast|transpose)(_|$)", re.IGNORECASE
)
_PROCESSORS = {"TRISC_UNPACK": "", "TRISC_MATH": "", "TRISC_PACK": ""}
_ANY = "any"
"""The function of a setting that is not known."""


@dataclass(frozen=True)
class InitialisationFault:
    """A wrong use of an initialisation, with its location.

    Attributes:
        file, line: of the call.
    """

    file: Path
    line: int
    message: str


@dataclass(frozen=True)
class _Setting:
    """The set-up of a processor: its low-level kernels, and the call that set them up."""

    cores: frozenset[tuple[str, str]]
    function: str
    line: int

    def serves(self, step: Step) -> bool:
        return self.function == _ANY or any(
            core == step.core and _agree(kind, step.kind) for core, kind in self.cores
        )

    @property
    def described(self) -> str:
        return (
            f"is set up by {self.function} in line {self.line}"
            if self.function
            else ("was never set up")
        )


_UNSET = _Setting(frozenset(), "", 0)
_UNKNOWN = _Setting(frozenset(), _ANY, 0)


def _agree(one: str, other: str) -> bool:
    """True if two uses are equal as far as they are known."""
    if len(one.split()) != len(other.split()):
        return True
    return one == other


@dataclass(frozen=True)
class _State:
    """The possible states at a point of a kernel.

    Attributes:
        registers: who may have the destination registers, and since which line; "" has nobody.
        settings: by processor.
        masks: lines where packing was limited to the results of reductions; 0 if it is not.
        mask_is_old: whether the registers may have been given back since.
        reduced: whether a reduction may have run since the registers were acquired.
        vector: initialisations of the vector engine that may have been called.
    """

    registers: frozenset[tuple[str, int]] = frozenset({("", 0)})
    settings: Mapping[str, frozenset[_Setting]] = field(
        default_factory=lambda: dict.fromkeys(ENGINES, frozenset({_UNSET}))
    )
    masks: frozenset[int] = frozenset({0})
    mask_is_old: bool = False
    reduced: bool = False
    vector: frozenset[str] = frozenset()

    def or_other(self, other: _State) -> _State:
        return _State(
            self.registers | other.registers,
            {name: self.settings[name] | other.settings[name] for name in ENGINES},
            self.masks | other.masks,
            self.mask_is_old and other.mask_is_old,
            self.reduced or other.reduced,
            self.vector | other.vector,
        )

    def with_setting(self, engine: str, setting: _Setting) -> _State:
        return replace(self, settings={**self.settings, engine: frozenset({setting})})


@dataclass
class InitialisationCheck:
    """Follows a kernel call by call.

    Attributes:
        table: what calls of the release do.
        full_sync: whether the destination registers are one section (dst_full_sync_en), so that a
            full initialisation starts again where it was.
    """

    table: InitialisationTable
    full_sync: bool = False
    _found: dict[tuple[Path, int], InitialisationFault] = field(
        default_factory=dict[tuple[Path, int], InitialisationFault]
    )

    def faults(
        self, sources: Iterable[Path], defines: Mapping[str, str] | None = None
    ) -> list[InitialisationFault]:
        """The faults of a compute kernel, in the order of its lines.

        Args:
            sources: the kernel and the headers that come with it.
        """
        self._found = {}
        text = KernelText(_PROCESSORS | dict(defines or {}))
        for source in sources:
            text.add(source)
        start = next((name for name in ("kernel_main", "MAIN") if name in text.functions), None)
        if start is not None:
            self._run(flattened(text.functions[start], text.functions, (start,)), _State())
        return sorted(self._found.values(), key=lambda fault: (str(fault.file), fault.line))

    def _run(self, statements: Statements, state: _State) -> tuple[_State, bool]:
        """The state after statements, and whether they may come to their end."""
        for statement in statements:
            match statement:
                case Call():
                    state = self._call(statement, state)
                case Choice((only,)):
                    # A function in place of its call.
                    state, _ = self._run(only, state)
                case Choice(branches):
                    ends = [self._run(branch, state) for branch in branches]
                    through = [each for each, reached in ends if reached]
                    if not through:
                        return ends[0][0], False
                    state = through[0]
                    for other in through[1:]:
                        state = state.or_other(other)
                case Loop(body):
                    after, reached = state, True
                    for _ in range(_PASSES):
                        after, reached = self._run(body, after)
                        if not reached:
                            break
                        state = state.or_other(after)
                case End():
                    return state, False
        return state, True

    def _call(self, call: Call, state: _State) -> _State:
        name = call.name
        if name in _ACQUIRES:
            state = replace(state, registers=frozenset({(_ACQUIRES[name], call.line)}))
            return replace(state, reduced=False) if _ACQUIRES[name] == "math" else state
        if name in _RELEASES:
            return replace(state, registers=frozenset({("", 0)}), mask_is_old=True)
        if self.table.is_vector_initialisation(name):
            return replace(state, vector=state.vector | {name})
        if wanted := self.table.vector_initialisations(name):
            if not wanted & state.vector and _ANY not in state.vector:
                self._report(call, f"{name} without {_one_of(wanted)} before it")
            return state
        steps = self.table.steps(name, call.template)
        if not steps:
            return self._unknown(call, state)
        return self._after_steps(call, steps, state)

    def _unknown(self, call: Call, state: _State) -> _State:
        """After a call of something whose text is not at hand."""
        known = call.name in self.table.bodies or call.name.startswith(("cb_", "get_", "noc_"))
        if known or not _UNKNOWN_INIT.search(call.name):
            return state
        settings = dict.fromkeys(ENGINES, frozenset({_UNKNOWN}))
        return replace(state, settings=settings, masks=frozenset({0}), vector=state.vector | {_ANY})

    def _after_steps(self, call: Call, steps: tuple[Step, ...], state: _State) -> _State:
        full = any(step.verb == "full" for step in steps)
        if full:
            self._check_registers(call, state)
        for step in steps:
            if step.verb == "need":
                state = self._check_need(call, step, state)
        for engine in ENGINES:
            cores = frozenset(
                (step.core, step.kind)
                for step in steps
                if step.verb == "set" and step.engine == engine
            )
            undone = [step for step in steps if step.verb == "undo" and step.engine == engine]
            if cores:
                if not full and not undone:
                    self._check_undone(call, engine, cores, state)
                if engine == "math":
                    self._check_mask(call, cores, state)
                state = state.with_setting(engine, _Setting(cores, call.name, call.line))
            elif undone:
                tiles = frozenset({("tiles", "")}) if engine == "pack" else frozenset()
                state = state.with_setting(engine, _Setting(tiles, call.name, call.line))
        if full or any(step.verb == "unmask" for step in steps):
            return replace(state, masks=frozenset({0}))
        if any(step.verb == "mask" for step in steps):
            return replace(state, masks=frozenset({call.line}), mask_is_old=False)
        return state

    def _check_mask(self, call: Call, cores: frozenset[tuple[str, str]], state: _State) -> None:
        """Refuses another operation while packing is still limited to results of reductions that
        are packed."""
        another = not any(core.startswith("reduce") for core, _ in cores)
        if another and state.mask_is_old and 0 not in state.masks:
            self._report(
                call,
                f"{call.name}: packing keeps only results of reductions since line "
                f"{min(state.masks)}; reduce_uninit is missing",
            )

    def _check_registers(self, call: Call, state: _State) -> None:
        if not self.full_sync and all(owner for owner, _ in state.registers):
            since = min(line for _, line in state.registers)
            self._report(
                call,
                f"{call.name} is a full initialisation, which resets the destination registers and "
                f"their semaphores, but they are in use since line {since}; call it before "
                "tile_regs_acquire or after tile_regs_release, and a short one within",
            )

    def _check_need(self, call: Call, step: Step, state: _State) -> _State:
        settings = state.settings[step.engine]
        if not any(setting.serves(step) for setting in settings):
            setting = min(settings, key=lambda each: each.line)
            self._report(
                call,
                f"{call.name}: {ENGINES[step.engine]} {setting.described}, not for this; its own "
                f"initialisation is missing{self._undoing(step.engine, setting)}",
            )
        if step.core.startswith("reduce"):
            return replace(state, reduced=True)
        packs = (step.engine, step.core) == ("pack", "tiles")
        if packs and not state.reduced and 0 not in state.masks:
            self._report(
                call,
                f"{call.name}: packing keeps only results of reductions since line "
                f"{min(state.masks)}, and nothing was reduced; reduce_uninit is missing",
            )
        return state

    def _undoing(self, engine: str, setting: _Setting) -> str:
        names = {self.table.undone.get((engine, core), "") for core, _ in setting.cores} - {""}
        return f", or {_one_of(names)}" if names else ""

    def _check_undone(
        self, call: Call, engine: str, cores: frozenset[tuple[str, str]], state: _State
    ) -> None:
        """Refuses the initialisation of another operation where the one before is not undone."""
        kept = {core for core, _ in cores}
        missing: set[str] = set()
        for setting in state.settings[engine]:
            names = {
                self.table.undone[engine, core]
                for core, _ in setting.cores
                if (engine, core) in self.table.undone and core not in kept
            }
            if not names:
                return
            missing |= names
        line = min(setting.line for setting in state.settings[engine])
        self._report(
            call,
            f"{call.name}: what line {line} set up for {ENGINES[engine]} has to be undone first; "
            f"{_one_of(missing)} is missing",
        )

    def _report(self, call: Call, message: str) -> None:
        fault = InitialisationFault(call.file, call.line, message)
        self._found.setdefault((call.file, call.line), fault)


def _one_of(names: Iterable[str]) -> str:
    return " or ".join(sorted(names))
