"""Level 2 against models that were written by hand, and those against cards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cost.hand_written import ANCHORS, Anchor, hand_written, ours, theirs

NAMES = [anchor.name for anchor in ANCHORS]
OF_CARD = {
    # Of these figures the host has a share, which the model of cost knows nothing of.
    "llama_3_2_1b_decode": (0.8, 1.0),
    "llama_3_1_8b_decode": (0.8, 1.0),
    # Products of 12x12 tiles a core in 24 blocks take twice what is estimated.
    "bert_base": (0.7, 1.2),
    "vit_base": (0.8, 1.2),
    # The 3x3 convolutions of its first layer read each row once, not three times.
    "resnet50": (0.8, 1.45),
}
"""Between which shares of the card's time the estimate of a whole model has to be."""
MOST = {
    "llama_3_2_1b_decode": 1.1,
    "bert_base": 0.95,
    "vit_base": 1.1,
    "resnet50": 1.1,
}
"""Most time that ours may take, as a multiple of what was written by hand."""


@pytest.mark.parametrize("anchor", ANCHORS, ids=NAMES)
def test_calls_written_by_hand_take_what_cards_take(anchor: Anchor) -> None:
    least, most = OF_CARD[anchor.name]
    assert least <= theirs(anchor, whole=True) / anchor.card <= most


@pytest.mark.parametrize("anchor", ANCHORS, ids=NAMES)
def test_every_call_is_priced(anchor: Anchor) -> None:
    rows = list(hand_written(anchor.name))
    assert len(rows) > 20
    assert all(row.milliseconds > 0 for row in rows)


@pytest.mark.parametrize("name", MOST)
def test_level_2_is_near_what_is_written_by_hand(name: str, corpus: Path) -> None:
    (anchor,) = (each for each in ANCHORS if each.name == name)
    assert ours(anchor, corpus) <= MOST[name] * theirs(anchor)
