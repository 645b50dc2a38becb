"""Models that were written by hand for the library, as calls of the model of cost.

Each table of `benchmarks/hand_written_models` has the calls of a model, with the sources in its
head. A row has `times call operands results attributes place`: the number of such calls in a run
of the whole model, the call as in `measured.tsv`, and where the source makes it.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.cost.measured import attributes, tensor
from tests.optimizer.modules import seconds
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.optimizer.call import LibraryCall
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.systems.cards import default_system

FOLDER = Path(__file__).parents[2] / "benchmarks" / "hand_written_models"


@dataclass(frozen=True)
class Anchor:
    """A model that was written by hand, and ours of the same sizes."""

    name: str
    """Its table."""
    layers: int
    """Layers of the whole model; 0 if ours is whole, too."""
    module: str
    """Ours, of one layer, in a folder of modules; empty if there is none."""
    weights: str = ""
    """Data type of the weights of products."""
    activations: str = ""
    """Data type of activations; empty where theirs have the 16 bits of the module."""
    images: tuple[int, int] | None = None
    """Images in our module, and in theirs."""
    card: float = 0.0
    """Milliseconds of the whole model on n150."""
    source: str = ""
    """Source of the figure of the card: a path in tt-metal 0.70."""


_LAYERS = "models__single_blocks_and_layers__"
ANCHORS = (
    Anchor(
        *("llama_3_2_1b_decode", 16, f"{_LAYERS}llama_3_2_1b_decode_layer", "bfp8_b"),
        card=1000 / 84.7,
        source="models/tt_transformers/PERF.md, with the host",
    ),
    Anchor(
        *("llama_3_1_8b_decode", 32, ""),
        card=1000 / 26.0,
        source="models/README.md, with the host",
    ),
    Anchor(
        *("bert_base", 12, f"{_LAYERS}bert_encoder_layer", "bfp8_b", "bfp8_b"),
        card=8000 / 460,
        source="models/demos/wormhole/sentence_bert/tests/perf",
    ),
    Anchor(
        *("vit_base", 12, f"{_LAYERS}vit_vision_layer", "bfp8_b", "bfp8_b"),
        card=8000 / 1560,
        source="models/demos/vision/classification/vit/wormhole/tests",
    ),
    Anchor(
        *("resnet50", 0, "models__resnet_hf", "bfp8_b", "bfp8_b", (8, 16)),
        card=16000 / 6335,
        source="models/demos/vision/classification/resnet50/wormhole/tests",
    ),
)


@dataclass(frozen=True)
class HandWritten:
    """A call of a model."""

    times: int
    """Number of such calls in a run."""
    call: LibraryCall
    place: str

    @property
    def milliseconds(self) -> float:
        """The estimated time of one such call on n150."""
        known = self.call.attributes.get("microseconds")
        return known / 1000 if known is not None else _model().cost(self.call).seconds * 1000


def hand_written(name: str) -> Iterator[HandWritten]:
    """The calls of a model, in the order of the source."""
    with (FOLDER / f"{name}.tsv").open(newline="") as lines:
        rows = csv.reader((line for line in lines if line[0] != "#"), delimiter="\t", quotechar="'")
        for times, call, operands, results, words, place in rows:
            made = LibraryCall(
                call,
                tuple(tensor(text) for text in operands.split()),
                tuple(tensor(text) for text in results.split()),
                attributes(json.loads(words)),
            )
            yield HandWritten(int(times), _priced(made), place)


def theirs(anchor: Anchor, whole: bool = False) -> float:
    """Estimated milliseconds of a model that was written by hand, of one layer or whole."""
    return sum(
        (1 if row.times == anchor.layers and not whole else row.times) * row.milliseconds
        for row in hand_written(anchor.name)
    )


def ours(anchor: Anchor, corpus: Path) -> float:
    """Estimated milliseconds of what level 2 makes of the same model."""
    text = (corpus / f"{anchor.module}.mlir").read_text()
    if anchor.images is not None:
        # Of all tensors, and of the shapes that some are brought to, the first dimension.
        of_module, of_model = anchor.images
        text = text.replace(f"tensor<{of_module}x", f"tensor<{of_model}x")
        text = text.replace(f"shape = [{of_module} : i32", f"shape = [{of_model} : i32")
    options = CompileOptions(
        "m", optimize=2, weights=anchor.weights, activations=anchor.activations
    )
    return seconds(compile_module(Source("m.mlir", text), options)) * 1000


def _model() -> CostModel:
    return CostModel(default_system("wormhole_b0").chip)


def _priced(call: LibraryCall) -> LibraryCall:
    """The call that the model of cost knows."""
    if call.name == "paged_fused_update_cache":
        # Keys and values are written at the same time, on cores of their own.
        cache, part, _, _, places = call.operands
        return replace(call, name="paged_update_cache", operands=(cache, part, places))
    if call.name in ("reshard", "fold"):
        return replace(call, name="clone")
    if (taken := call.attributes.get("positions")) is not None:
        query, *caches = call.operands[:3]
        shapes = [(*each.shape[:2], taken, each.shape[3]) for each in caches]
        seen = [each.with_(shape=shape) for each, shape in zip(caches, shapes, strict=True)]
        return replace(call, operands=(query, *seen, *call.operands[3:]))
    return call
