"""`ttcodegen tune`: searches faster alternatives of a project's ops, and writes them as edits."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ttcodegen.cli.arguments import ArgumentParser, add_message_options, apply_message_options
from ttcodegen.cli.entry import ExitStatus
from ttcodegen.foundation.messages import Level, printable, report


def argument_parser() -> ArgumentParser:
    """The options of the sub-command."""
    parser = ArgumentParser(
        prog="ttcodegen tune",
        description="Tries the legal alternatives of the calls of a project under the model of "
        "cost, and writes the fastest into its C++ as edits.",
    )
    add = parser.add_argument
    add("out", metavar="OUT", type=Path, help="the folder of the project")
    add("--op", metavar="NAME", action="append", default=[], help="an op, by the name in --explain "
        "and --edits (all, from the one that takes longest on); may be given again")  # fmt: skip
    add("--budget", metavar="N", type=int, help="begin no other op after N alternatives (10000)")
    add("--validate", action="store_true", help="ask the Python package ttnn about the fastest "
        "alternatives, on a device that it mocks; what it refuses is not taken")  # fmt: skip
    add("--card", action="store_true", help="measure the fastest alternatives on the card")
    add("--python", metavar="P", needs=["--validate", "--card"],
        help="the Python that ttnn is installed in, for --validate and --card "
        "(TTCODEGEN_TTNN_PYTHON)")  # fmt: skip
    add("--measured", metavar="F.tsv", type=Path, help="a table of times on a card, which count "
        "instead of estimates; --card adds to it (OUT/measured.tsv)")  # fmt: skip
    add_message_options(parser)
    return parser


def run_tune(arguments: Sequence[str]) -> int:
    """Runs the sub-command; returns the exit status."""
    parser = argument_parser()
    options = parser.parse_args(arguments)
    apply_message_options(options)
    if options.budget is not None and options.budget < 1:
        parser.error("--budget is a number of alternatives, from 1 on")
    if options.measured is not None and not options.card and not options.measured.is_file():
        parser.error(f"--measured: there is no table '{options.measured}'")
    return tune(options)


def tune(options: argparse.Namespace) -> int:
    """Tunes a project as the options request."""
    from ttcodegen.optimizer.cost.measurements import read_measured, write_measured
    from ttcodegen.project.edits import tune_ops
    from ttcodegen.project.manifest import read_manifest
    from ttcodegen.project.tuning.search import summary, table
    from ttcodegen.systems.description import DEFAULT_ARCHITECTURE

    manifest = read_manifest(options.out) or {}
    architecture = str(manifest.get("arch", DEFAULT_ARCHITECTURE))
    times: Path = options.measured or options.out / "measured.tsv"
    measured = read_measured(times, architecture)
    judge = None
    if options.validate or options.card:
        from ttcodegen.rt.commands.validate import LibraryJudge

        judge = LibraryJudge(options.out / "model.ttnn", options.python, card=options.card)
    tunings, written = tune_ops(
        options.out, options.op, budget=options.budget, judge=judge, measured=measured
    )
    if judge is not None and judge.measured:
        write_measured(times, architecture, judge.measured)
    shown = [table(each) for each in tunings] if options.op else [summary(tunings)]
    print(printable("\n".join(shown)), end="")
    note = f"wrote the fastest to {', '.join(written)}" if written else "nothing known is faster"
    report(Level.INFO, f"ttcodegen: {note}")
    return ExitStatus.DONE
