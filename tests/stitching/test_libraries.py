"""Shared objects of two projects in one process, and their sources in one program."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

import ttcodegen
from tests.stitching.conftest import BF16, EXAMPLE, Models
from ttcodegen import LoadedModule, ModuleError
from ttcodegen.cli.ttcodegen import main
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain

pytestmark = pytest.mark.slow

Pair = tuple[LoadedModule, LoadedModule]


@pytest.fixture
def loaded(models: Models, cpu_backend: CPUBackend) -> Generator[Pair]:
    """Both modules on one device."""
    with (
        ttcodegen.load(models.encoder) as encoder,
        ttcodegen.load(models.decoder, device=encoder) as decoder,
    ):
        yield encoder, decoder


def test_layouts_can_be_asked_for(loaded: Pair) -> None:
    encoder, decoder = loaded
    (hidden,) = encoder.encode.outputs
    assert (hidden.data_type, hidden.layout, hidden.buffer_type) == ("bfloat16", "tile", "dram")
    (taken,) = decoder.decode.inputs
    assert (taken.data_type, taken.layout, taken.buffer_type) == ("bfloat16", "row_major", "dram")


def test_one_runs_on_what_the_other_left(loaded: Pair, models: Models) -> None:
    encoder, decoder = loaded
    hidden = encoder.encode.submit(models.images)
    assert repr(hidden) == "DeviceTensor(32x128, bfloat16, tile, dram)"
    np.testing.assert_allclose(hidden.numpy().astype(np.float32), models.hidden, atol=0.05)
    converted = decoder.decode.to_layout(hidden)
    assert converted.layout == "row_major"
    assert np.array_equal(converted.numpy(), hidden.numpy())
    scores = decoder.decode.submit(converted)
    through_host = decoder.decode.run([encoder.encode.run([models.images])[0]])[0]
    assert np.array_equal(scores.numpy(), through_host)
    np.testing.assert_allclose(scores.numpy().astype(np.float32), models.scores, atol=0.01)


def test_a_tensor_that_lies_right_stays_what_it_is(loaded: Pair, models: Models) -> None:
    _, decoder = loaded
    hidden = models.hidden.astype(BF16)
    first = decoder.decode.to_device(hidden)
    same = decoder.decode.to_layout(first, "hidden")
    first.release()
    assert np.array_equal(same.numpy(), hidden)
    assert np.array_equal(
        decoder.decode.submit(hidden=same).numpy(), decoder.decode.run([hidden])[0]
    )


def test_a_tensor_that_lies_otherwise_is_refused(loaded: Pair, models: Models) -> None:
    encoder, decoder = loaded
    hidden = encoder.encode.submit(models.images)
    expected = r"'hidden': expected bfloat16 in rows in DRAM, found bfloat16 in tiles in DRAM"
    with pytest.raises(ModuleError, match=expected + r": convert it with to_layout"):
        decoder.decode.submit(hidden)
    with pytest.raises(ModuleError, match=r"expected the shape \(32, 64\), found \(32, 128\)"):
        encoder.encode.to_layout(hidden)
    with pytest.raises(ModuleError, match="'decode' has no input 'images'; it takes hidden"):
        decoder.decode.to_layout(hidden, "images")


def test_tensors_outlive_their_modules(models: Models, cpu_backend: CPUBackend) -> None:
    with ttcodegen.load(models.encoder) as encoder:
        hidden = encoder.encode.submit(models.images)
    np.testing.assert_allclose(hidden.numpy().astype(np.float32), models.hidden, atol=0.05)
    hidden.release()
    hidden.release()
    with pytest.raises(ModuleError, match="was released"):
        hidden.numpy()


def test_tensors_of_other_devices_are_refused(
    loaded: Pair, models: Models, cpu_backend: CPUBackend
) -> None:
    encoder, _ = loaded
    with ttcodegen.load(models.decoder) as decoder:
        hidden = encoder.encode.submit(models.images)
        with pytest.raises(ModuleError, match="is on another device"):
            decoder.decode.to_layout(hidden)


def test_closed_modules_lend_no_device(models: Models, cpu_backend: CPUBackend) -> None:
    encoder = ttcodegen.load(models.encoder)
    encoder.close()
    with pytest.raises(ModuleError, match="'encoder' is closed"):
        ttcodegen.load(models.decoder, device=encoder)


def test_both_in_one_program(
    models: Models, cpu_backend: CPUBackend, toolchain: Toolchain, tmp_path: Path
) -> None:
    """The example, as its CMakeLists.txt says, in a program that uses threads itself."""
    build, sources = tmp_path / "build", tmp_path / "stitching"
    shutil.copytree(EXAMPLE, sources)
    cmake = sources / "CMakeLists.txt"
    own = "find_package(Threads REQUIRED)\nadd_subdirectory("
    cmake.write_text(cmake.read_text().replace("add_subdirectory(", own, 1))
    configure = [toolchain.cmake, "-G", "Ninja", "-S", str(sources), "-B", str(build)]
    configure += [f"-DCMAKE_MAKE_PROGRAM={toolchain.ninja}"]
    configure += [f"-DCMAKE_CXX_COMPILER={toolchain.compiler}"]
    configure += ["-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror"]
    configure += [f"-DSTITCHED_MODELS={models.encoder.parent}"]
    configure += [f"-DTTCODEGEN_CPU_DIR={cpu_backend.folder}"]
    subprocess.run(configure, check=True, capture_output=True)
    subprocess.run([toolchain.ninja, "-C", str(build), "stitched"], check=True)
    np.save(tmp_path / "images.npy", models.images)
    subprocess.run([str(build / "stitched")], cwd=tmp_path, check=True)
    scores = np.load(tmp_path / "scores.npy")
    np.testing.assert_allclose(scores.astype(np.float32), models.scores, atol=0.01)


def configured(models: Path, backend: CPUBackend, toolchain: Toolchain, build: Path) -> str:
    """Message of CMake when it refuses to combine two projects in one program."""
    command = [toolchain.cmake, "-G", "Ninja", "-S", str(EXAMPLE), "-B", str(build)]
    command += [f"-DCMAKE_MAKE_PROGRAM={toolchain.ninja}", f"-DSTITCHED_MODELS={models}"]
    command += [f"-DCMAKE_CXX_COMPILER={toolchain.compiler}"]
    command += [f"-DTTCODEGEN_CPU_DIR={backend.folder}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    return " ".join(done.stderr.split())


def test_projects_of_two_versions_are_refused(
    models: Models, cpu_backend: CPUBackend, toolchain: Toolchain, tmp_path: Path
) -> None:
    for name in ("encoder", "decoder"):
        shutil.copytree(models.encoder.parent / name, tmp_path / name)
    cmake = tmp_path / "decoder" / "CMakeLists.txt"
    version = f"set(TTCODEGEN_VERSION {ttcodegen.__version__})"
    assert version in cmake.read_text()
    cmake.write_text(cmake.read_text().replace(version, "set(TTCODEGEN_VERSION 0.0.1)"))
    message = configured(tmp_path, cpu_backend, toolchain, tmp_path / "build")
    assert f"were written by ttcodegen {ttcodegen.__version__} and 0.0.1" in message
    assert "write them again with one version" in message


def test_two_modules_of_one_name_are_refused(
    models: Models, cpu_backend: CPUBackend, toolchain: Toolchain, tmp_path: Path
) -> None:
    for name in ("encoder", "decoder"):
        shutil.copytree(models.encoder, tmp_path / name)
    message = configured(tmp_path, cpu_backend, toolchain, tmp_path / "build")
    assert "Two modules are called encoder" in message


def test_modules_of_two_targets_are_refused(
    models: Models, cpu_backend: CPUBackend, toolchain: Toolchain, tmp_path: Path
) -> None:
    shutil.copytree(models.encoder, tmp_path / "encoder")
    decoder = [str(EXAMPLE / "decoder.mlir"), "-o", str(tmp_path / "decoder")]
    assert main([*decoder, "--target", "ttmetal"]) == 0
    message = configured(tmp_path, cpu_backend, toolchain, tmp_path / "build")
    assert 'INTERFACE_TTCODEGEN_TARGET property of "decoder_support" does not agree' in message
