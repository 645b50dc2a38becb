"""A minute of mutants, and those that once ended as none should.

A test says the same of the same tree, so its mutants are the same in each run;
`python -m tests.fuzzing --first SEED` tries others.
"""

from __future__ import annotations

import contextlib
import random
import time
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.fuzzing.caches import PlantedError, cache_mutant, use_cache
from tests.fuzzing.edits import edited
from tests.fuzzing.structure import mutated_structure
from tests.fuzzing.targets import (
    array_seed,
    calls_seeds,
    flatbuffer_seed,
    frontend_seeds,
    module_seeds,
    read_module,
    tried,
    use_array,
    use_flatbuffer,
)
from ttcodegen.foundation import cache
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.frontends import source_module
from ttcodegen.parsing import parse_module

SECONDS = 60
FIRST = 50
"""After the mutants that the quick test tries."""
KEPT = Path(__file__).parent / "kept"


@pytest.mark.slow
def test_a_minute_of_mutants() -> None:
    end = time.monotonic() + SECONDS
    first = seed = FIRST
    while time.monotonic() < end:
        finding = tried(seed)
        if finding is not None:
            pytest.fail(f"mutant {finding.seed} ({finding.target}): {finding.what}")
        seed += 1
    assert seed > first + 100


def test_the_same_seed_makes_the_same_mutant() -> None:
    for seed in range(FIRST):
        assert tried(seed) is None


def test_mutants_of_structure_are_other_modules_that_read() -> None:
    numbers = random.Random(5)
    seeds = [numbers.choice(module_seeds()) for _ in range(60)]
    mutants = [mutated_structure(seed, numbers) for seed in seeds]
    read = 0
    for seed, mutant in zip(seeds, mutants, strict=True):
        if mutant == seed:
            continue
        with contextlib.suppress(CompileError):
            parse_module(Source("mutant.mlir", mutant))
            read += 1
    assert read > len(seeds) // 3


def test_edited_modules_of_all_dialects_read() -> None:
    """Most edits are met after the parser."""
    numbers = random.Random(5)
    for seeds in (module_seeds(), frontend_seeds(), calls_seeds()):
        read = changed = 0
        for _ in range(40):
            seed = numbers.choice(seeds)
            mutant = edited(seed, numbers)
            changed += mutant != seed
            with contextlib.suppress(CompileError):
                source_module(Source("mutant.mlir", mutant))
                read += mutant != seed
        assert changed > 30
        assert read > 5


def test_a_cache_that_trusts_everybody_is_found() -> None:
    def use_caches() -> None:
        for seed in range(60):
            use_cache(cache_mutant(random.Random(seed)))

    use_caches()
    with patch.object(cache, "fault", lambda _: None), pytest.raises(PlantedError):
        use_caches()


def test_the_originals_are_right() -> None:
    assert len(module_seeds()) > 100
    assert len(calls_seeds()) > 50
    for text in (*calls_seeds()[::4], *frontend_seeds()[::4]):
        read_module(text)
    use_array(array_seed())
    for kind in ("ttnn", "ttm", "ttsys"):
        use_flatbuffer(kind, flatbuffer_seed(kind))


@pytest.mark.parametrize("path", sorted(KEPT.iterdir()), ids=lambda path: path.name)
def test_what_once_went_wrong(path: Path) -> None:
    if path.suffix == ".mlir":
        read_module(path.read_text("utf-8"))
    elif path.suffix == ".npy":
        use_array(path.read_bytes())
    else:
        use_flatbuffer(path.suffix[1:], path.read_bytes())
