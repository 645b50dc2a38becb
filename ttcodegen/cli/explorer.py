"""`ttcodegen-explorer`: shows models as graphs, compiles, runs and tunes them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ttcodegen.cli.arguments import (
    ArgumentParser,
    add_level_options,
    add_system_options,
    add_version_option,
    apply_message_options,
    chosen_system,
)
from ttcodegen.cli.entry import ExitStatus, Invocation, run_program
from ttcodegen.foundation.diagnostics import CompileError

if TYPE_CHECKING:
    from ttcodegen.explorer.session import Session

PROGRAM = "ttcodegen-explorer"
_TOKEN = "TTCODEGEN_EXPLORER_TOKEN"

_EPILOG = f"""\
examples:
  {PROGRAM} model.mlir                  a module, and the stages of its compile
  {PROGRAM} out                         a project, with what was edited in it
  {PROGRAM} --stages source,emitc model.mlir    what it is, and the C++ that it becomes
  {PROGRAM} -p 9000 -q models           all models of a folder, without a browser
  {PROGRAM} -u 0.0.0.0 -q model.mlir    over the network: the address has a token

The page comes from the package ai-edge-model-explorer: pip install 'ttcodegen[explorer]'.
{_TOKEN} in the environment sets the token.

exit status: 0 it was ended with Ctrl+C; 1 the model or the port cannot be had; 2 wrong usage;
70 a bug in ttcodegen
"""


def argument_parser() -> argparse.ArgumentParser:
    """The options of the command line."""
    parser = ArgumentParser(
        prog=PROGRAM,
        description="Shows models as graphs in Model Explorer; compiles, runs and tunes them.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("path", nargs="?", metavar="PATH", type=Path, help="a module, a flatbuffer, the folder of "
        "a project, or a folder with models (.)")  # fmt: skip
    add("-p", "--port", type=int, default=8080, metavar="PORT", help="the port (8080)")
    # The reference's example has it without a value, before another option.
    add("-u", "--url", nargs="?", const="localhost", default="localhost", metavar="HOST",
        help="the interface: a name or an address of this machine (localhost)")  # fmt: skip
    add("-q", "--no-browser", action="store_true", help="do not open a browser")
    add(
        "--target",
        choices=("ttnn", "ttmetal"),
        default="ttnn",
        help="the target that models are compiled for (ttnn)",
    )
    add_system_options(parser)
    add("--optimize", type=int, choices=(0, 1, 2), metavar="LEVEL", help="the level of "
        "optimization for ttnn (2)")  # fmt: skip
    add("--stages", metavar="LEFT,RIGHT", help="show two stages of the compile side by side, which "
        "follow each other: source, ttnn, optimized, lowered, emitc, ttmetal")  # fmt: skip
    add("--no-token", action="store_true", help="let everybody on this machine in, without the "
        "token of the printed address")  # fmt: skip
    add_level_options(parser)
    add_version_option(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    return run_program(PROGRAM, _run, argv)


def _run(invocation: Invocation) -> int:
    options = argument_parser().parse_args(invocation.arguments)
    apply_message_options(options)
    from ttcodegen.explorer.server import Server
    from ttcodegen.explorer.session import Session
    from ttcodegen.explorer.stages import Settings, read_settings
    from ttcodegen.explorer.workers import Workers

    given = {"target": options.target, "arch": options.arch, "optimize": options.optimize}
    settings = read_settings({k: v for k, v in given.items() if v is not None}, Settings())
    path: Path | None = options.path
    if path is not None and not path.exists():
        raise CompileError(f"there is no file '{path}'")
    model = None if path is None else Path(os.path.realpath(path))
    described = None if options.system_desc is None else chosen_system(options)
    settings = replace(settings, system=described)
    workers = Workers()
    workers.warm_up()
    listed = model is None or not _is_model(model)
    session = Session([_folder(model)], settings, workers=workers, listed=listed)
    _take_descriptors()
    try:
        server = Server(
            session,
            options.url,
            options.port,
            token=os.environ.get(_TOKEN, ""),
            without_token=options.no_token,
        )
    except CompileError:
        session.close()
        raise
    try:
        # Those who ask first would all wait for it, and take the processor from it.
        workers.wait_until_warm()
        server.start()
        shown = model if model is not None and _is_model(model) else None
        address = server.address(shown, _stages(session, shown, options.stages))
        print(f"Starting Model Explorer server at:\n{address}\n")
        print(f"Decisions of the optimizer:\n{server.own_address(shown)}\n")
        print("Press Ctrl+C to stop.", flush=True)
        if not options.no_browser:
            import webbrowser

            webbrowser.open_new_tab(session.access.page_to(address))
        server.wait()
    except KeyboardInterrupt:
        pass  # Ctrl+C and SIGTERM are how a server is ended.
    finally:
        server.close()
    return ExitStatus.DONE


def _take_descriptors() -> None:
    """Raises the limit of open files to the maximum, as each connection is one."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        pass  # On some systems the reported hard limit cannot be set.


def _stages(session: Session, model: Path | None, stages: str | None) -> list[str]:
    """Ids of the graphs that are shown side by side."""
    if stages is None:
        return []
    from ttcodegen.explorer.server import MOST_PANES

    names = [name.strip() for name in stages.split(",")]
    if model is None or len(names) != MOST_PANES:
        raise CompileError("--stages takes two stages of one model", remedy="source,lowered")
    return session.graphs_of_stages(model, names)


def _folder(model: Path | None) -> Path:
    """Folder with read access: the model's, or the model itself if it is a folder."""
    if model is None:
        return Path.cwd()
    return model if model.is_dir() else model.parent


def _is_model(path: Path) -> bool:
    from ttcodegen.project.manifest import read_manifest

    return path.is_file() or read_manifest(path) is not None


if __name__ == "__main__":
    sys.exit(main())
