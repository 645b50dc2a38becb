"""Compares level 2 with models that were written by hand, by the model of cost and on cards.

    python benchmarks/hand_written.py [--corpus DIR]        # a line for each model
    python benchmarks/hand_written.py NAME                  # the calls of a model

DIR holds the modules of ours by the names in `tests/cost/hand_written.py`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.cost.hand_written import ANCHORS, FOLDER, hand_written, ours, theirs


def calls(name: str) -> None:
    """Prints the calls of a model with their estimates."""
    for row in hand_written(name):
        each = row.milliseconds * 1000
        print(
            f"{row.times:3} {row.call.name:38} {each:8.1f} us {row.times * each:8.0f}  {row.place}"
        )


def compare(corpus: Path) -> None:
    """Prints what both take of one layer, and the whole model against the card."""
    head = (
        f"{'model':22} {'theirs':>8} {'ours':>8} {'ratio':>6} {'activations':>11}"
        f"   {'whole':>11} {'card':>8} ratio"
    )
    print(head)
    for anchor in ANCHORS:
        one, all_ = theirs(anchor), theirs(anchor, whole=True)
        of_card = f"{all_:11.2f} {anchor.card:8.2f} {all_ / anchor.card:5.2f}  {anchor.source}"
        made = ours(anchor, corpus) if anchor.module else 0.0
        found = f"{made:8.3f} {made / one:6.2f}" if made else " " * 15
        found += f" {anchor.activations or '16 bits' if made else '':>11}"
        print(f"{anchor.name:22} {one:8.3f} {found}   {of_card}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("name", nargs="?", choices=sorted(p.stem for p in FOLDER.glob("*.tsv")))
    parser.add_argument("--corpus", type=Path, default=Path("../shared/corpus/ttir"))
    given = parser.parse_args()
    if given.name:
        calls(given.name)
    else:
        compare(given.corpus)
