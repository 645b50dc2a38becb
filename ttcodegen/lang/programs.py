"""Runs Python programs that import `ttl` and `ttnn`."""

from __future__ import annotations

import ast
import importlib
import linecache
import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, ModuleType, TracebackType

from ttcodegen.diagnostics import CompileError, Note, Source, SourceLocation
from ttcodegen.lang.context import Launch, current
from ttcodegen.lang.counted_loops import COUNTERS, with_counted_loops
from ttcodegen.lang.places import place
from ttcodegen.user_files import is_of_user

PACKAGES = {
    "ttl": "ttcodegen.lang.ttl",
    "ttl.math": "ttcodegen.lang.ttl.math",
    "ttl.block": "ttcodegen.lang.ttl.block",
    "ttnn": "ttcodegen.lang.ttnn",
}
"""What programs import, and what they get."""


@contextmanager
def language_packages() -> Generator[None]:
    """Makes `ttl` and `ttnn` those of the simulator; packages of these names that are installed are
    back afterwards."""
    hidden = {
        name: sys.modules.pop(name)
        for name in list(sys.modules)
        if name.partition(".")[0] in ("ttl", "ttnn")
    }
    sys.modules.update({name: importlib.import_module(real) for name, real in PACKAGES.items()})
    try:
        yield
    finally:
        for name in PACKAGES:
            sys.modules.pop(name, None)
        sys.modules.update(hidden)


def run_program_text(
    source: Source,
    arguments: Sequence[str] = (),
    watch: Callable[[Launch], Callable[[], None]] | None = None,
    name: str = "__main__",
) -> dict[str, object]:
    """Runs a program as `python program.py` would, with the packages of the simulator.

    Args:
        source: the program; modules next to it can be imported.
        arguments: those that the program finds in `sys.argv`.
        watch: is called with each launch of an operation before its kernels run; what it returns is
            called afterwards.
        name: the name that it knows itself by; another one for what is imported.

    Returns:
        What the module holds at its end.

    Raises:
        CompileError: if the program breaks a rule of the language, or raises anything else.
        SystemExit: if the program ends itself.
    """
    code = _compiled(source)
    main = ModuleType(name)
    main.__file__ = source.name
    main.__dict__.update(COUNTERS)
    lines = source.text.splitlines(keepends=True)
    linecache.cache[source.name] = (len(source.text), None, lines, source.name)
    saved = sys.argv, sys.path[:], sys.modules.get(name)
    sys.argv = [source.name, *arguments]
    sys.path.insert(0, str(Path(source.name).resolve().parent))
    sys.modules[name] = main
    current.watch = watch
    try:
        _run(code, main)
    finally:
        current.watch = None
        sys.argv, sys.path[:] = saved[0], saved[1]
        if saved[2] is not None:
            sys.modules[name] = saved[2]
        else:
            sys.modules.pop(name)
    return main.__dict__


def _run(code: CodeType, main: ModuleType) -> None:
    with language_packages():
        try:
            exec(code, main.__dict__)
        except (CompileError, SystemExit, KeyboardInterrupt):
            raise
        except BaseException as raised:
            raise _raised_by_program(raised) from None


def _compiled(source: Source) -> CodeType:
    try:
        module = ast.parse(source.text, source.name)
        return compile(with_counted_loops(module), source.name, "exec", dont_inherit=True)
    except SyntaxError as wrong:
        where = SourceLocation(source.name, wrong.lineno or 1, wrong.offset or 1)
        raise CompileError(f"the program is no Python: {wrong.msg}", where) from None


def _raised_by_program(raised: BaseException) -> CompileError:
    """What the program did not catch, at the innermost of its lines; the calls that led there are
    notes."""
    frames = [
        (code, trace.tb_lasti)
        for trace in _traces(raised)
        if is_of_user((code := trace.tb_frame.f_code).co_filename)
    ]
    text = "".join(traceback.format_exception_only(raised)).strip()
    message = f"the program raised {text}"
    if not frames:
        return CompileError(message)
    notes = [Note("called from here", place(each)) for each in reversed(frames[:-1])]
    return CompileError(message, place(frames[-1]), notes=notes)


def _traces(raised: BaseException) -> Generator[TracebackType]:
    trace = raised.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next
