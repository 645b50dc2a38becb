"""Built projects as Python callables, and the C API below them."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import threading
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import ttcodegen
from tests.project.conftest import write
from tests.project.test_program import BIAS, CONSTANT, WEIGHT, X
from ttcodegen import LoadedModule, ModuleError
from ttcodegen.compilation import CompiledModule
from ttcodegen.project.building import BuiltProject
from ttcodegen.project.toolchain import Toolchain

pytestmark = pytest.mark.slow


@pytest.fixture
def model(built: tuple[Path, BuiltProject]) -> Generator[LoadedModule]:
    """The module, with its weights."""
    with ttcodegen.load(built[0]) as loaded:
        loaded.set_weight("layer.weight", WEIGHT)
        loaded.set_weight("layer_bias", BIAS)
        yield loaded


def test_functions_are_called(model: LoadedModule) -> None:
    expected = X @ WEIGHT + BIAS + CONSTANT
    np.testing.assert_allclose(model.forward(X), expected, rtol=1e-5)
    np.testing.assert_allclose(model["forward"](x=X), expected, rtol=1e-5)
    np.testing.assert_allclose(model.forward(X.tolist()), expected, rtol=1e-5)
    np.testing.assert_allclose(model.forward(X.T.copy().T), expected, rtol=1e-5)
    np.testing.assert_allclose(model.forward(X.astype(">f8")), expected, rtol=1e-5)


def test_results_have_the_types_of_the_source(model: LoadedModule) -> None:
    half = np.array([1.5, -2, 3], ml_dtypes.bfloat16)
    i, h, u, larger = model["types/of all"]([1, -2, 3], half, np.array([0, 1, 65535], np.uint16))
    assert (i.dtype, i.tolist()) == (np.int64, [2, -4, 6])
    assert (h.dtype, h.tolist()) == (ml_dtypes.bfloat16, [1.5, -2, 3])
    assert (u.dtype, u.tolist()) == (np.uint16, [0, 1, 65535])
    assert (larger.dtype, larger.tolist()) == (np.bool_, [False] * 3)


def test_functions_describe_themselves(model: LoadedModule) -> None:
    forward, types = model.functions
    assert [s.field for s in forward.inputs] == ["x"]
    assert [(w.name, w.kind, w.shape) for w in forward.weights] == [
        ("layer.weight", "parameter", (4, 3)),
        ("layer.bias", "constant", (1, 3)),
    ]
    assert [(o.dtype, o.computed_dtype) for o in types.outputs] == [
        (np.int64, np.int32),
        (ml_dtypes.bfloat16, ml_dtypes.bfloat16),
        (np.uint16, np.uint16),
        (np.bool_, ml_dtypes.bfloat16),
    ]


def test_weights_are_replaced(model: LoadedModule) -> None:
    model.forward(X)
    model.set_weight("layer_weight", WEIGHT * 2)
    np.testing.assert_allclose(model.forward(X), X @ WEIGHT * 2 + BIAS + CONSTANT, rtol=1e-5)
    model.set_weight("layer_bias", BIAS * 0)
    np.testing.assert_allclose(model.forward(X), X @ WEIGHT * 2 + CONSTANT, rtol=1e-5)


def test_missing_weights_are_named(built: tuple[Path, BuiltProject]) -> None:
    with ttcodegen.load(built[0]) as loaded:
        with pytest.raises(ModuleError, match=r"weight 'layer.weight' has no values: .*\.npy"):
            loaded.forward(X)
        loaded.draw_weights(3)
        first = loaded.forward(X)
    with ttcodegen.load(built[0], seed=3) as loaded:
        assert np.array_equal(loaded.forward(X), first)


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ([], {}, "needs the input 'x'; it takes x"),
        ([X, X], {}, r"takes 1 inputs \(x\), found 2"),
        ([X], {"x": X}, "has no further input 'x'"),
        ([], {"y": X}, "needs the input 'x'"),
        ([X.T], {}, r"'x': expected the shape \(2, 4\), found \(4, 2\)"),
        ([X.astype(complex)], {}, "'x': elements of complex128 cannot be used"),
        ([X.astype(str)], {}, "'x': elements of <U"),
    ],
)
def test_calls_that_do_not_fit(
    model: LoadedModule, arguments: list[np.ndarray], named: dict[str, np.ndarray], message: str
) -> None:
    with pytest.raises(ModuleError, match=message):
        model.forward(*arguments, **named)


def test_floats_do_not_become_integers(model: LoadedModule) -> None:
    h, u = np.zeros(3, np.float32), np.zeros(3, np.uint16)
    with pytest.raises(ModuleError, match="'i': expected int64, found float64"):
        model["types/of all"]([0.5, 1, 2], h, u)
    with pytest.raises(ModuleError, match=r"'i': the value 4294967296 .* does not fit int32"):
        model["types/of all"]([2**32, 1, 2], h, u)


def test_names_that_are_not_there(model: LoadedModule) -> None:
    with pytest.raises(AttributeError, match="only forward, types_of_all"):
        _ = model.backward
    with pytest.raises(ModuleError, match="there is no weight 'w', only layer_bias, layer_weight"):
        model.set_weight("w", WEIGHT)
    with pytest.raises(ModuleError, match="several functions"):
        model(X)


def test_a_closed_module_refuses(built: tuple[Path, BuiltProject]) -> None:
    model = ttcodegen.load(built[0], seed=0)
    model.close()
    model.close()
    with pytest.raises(ModuleError, match="is closed"):
        model.forward(X)


def test_other_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModuleError, match=r"no project of ttcodegen"):
        ttcodegen.load(tmp_path)


def test_a_project_is_built_when_it_is_loaded(
    compiled: CompiledModule, tmp_path: Path, toolchain: Toolchain
) -> None:
    write(compiled, tmp_path)
    with ttcodegen.load(tmp_path, seed=0) as model:
        assert model.forward(X).shape == (2, 3)


def test_two_models_of_one_project_are_apart(built: tuple[Path, BuiltProject]) -> None:
    with ttcodegen.load(built[0]) as one, ttcodegen.load(built[0]) as other:
        for model, factor in ((one, 1), (other, 2)):
            model.set_weight("layer_weight", WEIGHT * factor)
            model.set_weight("layer_bias", BIAS)
        np.testing.assert_allclose(one.forward(X), X @ WEIGHT + BIAS + CONSTANT, rtol=1e-5)
        np.testing.assert_allclose(other.forward(X), X @ WEIGHT * 2 + BIAS + CONSTANT, rtol=1e-5)


def test_threads_get_the_results_of_their_own_inputs(built: tuple[Path, BuiltProject]) -> None:
    """Threads share a model, two by two, or have it for themselves."""
    threads, calls = 8, 200
    wrong: list[str] = []
    ready = threading.Barrier(threads)

    def call(number: int, model: LoadedModule, factor: int) -> None:
        ready.wait(60)
        for turn in range(calls):
            x = X + (number * calls + turn)
            expected = x @ WEIGHT * factor + BIAS + CONSTANT
            if not np.allclose(model.forward(x), expected, rtol=1e-5):
                wrong.append(f"thread {number}, call {turn}")

    with ExitStack() as stack:
        models = [stack.enter_context(ttcodegen.load(built[0])) for _ in range(threads * 3 // 4)]
        for factor, model in enumerate(models, 1):
            model.set_weight("layer_weight", WEIGHT * factor)
            model.set_weight("layer_bias", BIAS)
        calling = [
            threading.Thread(target=call, args=(n, models[n % len(models)], n % len(models) + 1))
            for n in range(threads)
        ]
        for each in calling:
            each.start()
        for each in calling:
            each.join(120)
        assert not any(each.is_alive() for each in calling)
    assert wrong == []


C_PROGRAM = r"""
#include <stdio.h>
#include <string.h>

#include "tiny.h"

#define CHECK(condition)                                                              \
    if (!(condition)) {                                                               \
        printf("%d: %s: %s\n", __LINE__, #condition, tiny_last_error());              \
        return 1;                                                                     \
    }

int main(int argc, char** argv) {
    ttcodegen_model* model = NULL;
    CHECK(argc == 2 && strcmp(tiny_last_error(), "") == 0);
    CHECK(tiny_open(TTCODEGEN_API_VERSION + 1, NULL, 0, &model) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(model == NULL && strstr(tiny_last_error(), "version 3 of the API"));
    CHECK(tiny_open(TTCODEGEN_API_VERSION, NULL, 0, NULL) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(tiny_open(TTCODEGEN_API_VERSION, NULL, 9, &model) == TTCODEGEN_FAILED && !model);
    CHECK(tiny_open(TTCODEGEN_API_VERSION, argv[1], 0, &model) == TTCODEGEN_OK && model);

    CHECK(tiny_api_version() == 2 && tiny_function_count() == 2);
    CHECK(strcmp(tiny_function_name(0), "forward") == 0 && tiny_function_name(2) == NULL);
    CHECK(tiny_input_count(0) == 1 && tiny_weight_count(0) == 2 && tiny_output_count(1) == 4);
    CHECK(tiny_input_count(2) == 0);
    ttcodegen_tensor tensor;
    CHECK(tiny_describe_weight(0, 0, &tensor) == TTCODEGEN_OK);
    CHECK(strcmp(tensor.name, "layer.weight") == 0 && tensor.kind == TTCODEGEN_PARAMETER);
    CHECK(tensor.dtype == TTCODEGEN_FLOAT32 && tensor.rank == 2 && tensor.shape[1] == 3);
    CHECK(tiny_describe_input(0, 1, &tensor) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(tiny_describe_input(7, 0, &tensor) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(tiny_describe_output(0, 0, NULL) == TTCODEGEN_WRONG_ARGUMENT);

    float x[8] = {0}, weight[12] = {0};
    double bias[3] = {1, 2, 3}, y[6];
    const uint64_t x_shape[] = {2, 4}, weight_shape[] = {4, 3}, bias_shape[] = {1, 3};
    const uint64_t y_shape[] = {2, 3};
    ttcodegen_array in = {TTCODEGEN_FLOAT32, 2, x_shape, x, sizeof x};
    ttcodegen_array out = {TTCODEGEN_FLOAT64, 2, y_shape, y, sizeof y};
    ttcodegen_array w = {TTCODEGEN_FLOAT32, 2, weight_shape, weight, sizeof weight};
    ttcodegen_array b = {TTCODEGEN_FLOAT64, 2, bias_shape, bias, sizeof bias};
    CHECK(tiny_run(model, 0, &in, 1, &out, 1) == TTCODEGEN_FAILED);
    CHECK(strstr(tiny_last_error(), "weight 'layer.weight' has no values"));
    CHECK(tiny_set_weight(model, 0, 0, &w) == TTCODEGEN_OK);
    CHECK(tiny_set_weight(model, 0, 1, &b) == TTCODEGEN_OK);
    CHECK(tiny_run(model, 0, &in, 1, &out, 1) == TTCODEGEN_OK);
    CHECK(y[0] == 2 && y[1] == 4 && y[2] == 6 && y[3] == 5 && y[4] == 7 && y[5] == 9);

    CHECK(tiny_run(NULL, 0, &in, 1, &out, 1) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(tiny_run(model, 2, &in, 1, &out, 1) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(tiny_run(model, 0, &in, 2, &out, 1) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(tiny_run(model, 0, NULL, 1, &out, 1) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(tiny_set_weight(model, 0, 2, &w) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(tiny_set_weight(model, 0, 0, NULL) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(tiny_set_weight(model, 0, 0, &b) == TTCODEGEN_WRONG_ARGUMENT);
    ttcodegen_array wrong = in;
    wrong.bytes = 31;
    CHECK(tiny_run(model, 0, &wrong, 1, &out, 1) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(strcmp(tiny_last_error(), "'x': the buffer has 31 bytes, the elements need 32") == 0);
    wrong = in;
    wrong.rank = 0xffffffff;
    CHECK(tiny_run(model, 0, &wrong, 1, &out, 1) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(strcmp(tiny_last_error(), "'x': expected 2 dimensions, found 4294967295") == 0);
    wrong.rank = 0;
    CHECK(tiny_run(model, 0, &wrong, 1, &out, 1) == TTCODEGEN_WRONG_ARGUMENT);
    wrong = in;
    wrong.dtype = 13;
    CHECK(tiny_run(model, 0, &wrong, 1, &out, 1) == TTCODEGEN_WRONG_ARGUMENT);
    wrong.dtype = -1;
    CHECK(tiny_run(model, 0, &wrong, 1, &out, 1) == TTCODEGEN_WRONG_ARGUMENT);
    wrong = in;
    wrong.shape = NULL;
    CHECK(tiny_run(model, 0, &wrong, 1, &out, 1) == TTCODEGEN_WRONG_ARGUMENT);
    wrong = in;
    wrong.data = NULL;
    CHECK(tiny_run(model, 0, &wrong, 1, &out, 1) == TTCODEGEN_WRONG_ARGUMENT);
    wrong = out;
    wrong.dtype = TTCODEGEN_INT64;
    CHECK(tiny_run(model, 0, &in, 1, &wrong, 1) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(tiny_draw_weights(model, 0, 1) == TTCODEGEN_OK);

    ttcodegen_device_tensor *handle = NULL, *result = NULL;
    CHECK(tiny_to_device(model, 0, 0, &in, &handle) == TTCODEGEN_OK && handle);
    CHECK(tiny_to_device(model, 0, 1, &in, &result) == TTCODEGEN_WRONG_ARGUMENT && !result);
    CHECK(tiny_to_device(model, 0, 0, NULL, &result) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(tiny_to_device(model, 0, 0, &in, NULL) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(tiny_describe_tensor(handle, &tensor) == TTCODEGEN_OK && tensor.rank == 2);
    CHECK(tensor.layout == TTCODEGEN_TILE && tensor.memory == TTCODEGEN_DRAM);
    CHECK(strcmp(tensor.data_type, "float32") == 0 && tensor.shape[1] == 4);
    CHECK(tiny_describe_tensor(NULL, &tensor) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(tiny_describe_tensor(handle, NULL) == TTCODEGEN_WRONG_ARGUMENT);
    const ttcodegen_device_tensor* inputs[] = {handle};
    CHECK(tiny_submit(model, 0, inputs, 1, &result, 1) == TTCODEGEN_OK && result);
    CHECK(tiny_to_host(result, &out) == TTCODEGEN_OK);
    CHECK(tiny_to_host(result, &in) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(tiny_to_host(result, NULL) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(tiny_to_host(NULL, &out) == TTCODEGEN_WRONG_ARGUMENT);
    tiny_release(result);
    CHECK(tiny_submit(model, 0, inputs, 0, &result, 1) == TTCODEGEN_FAILED && !result);
    CHECK(tiny_submit(model, 0, NULL, 1, &result, 1) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(tiny_submit(model, 0, inputs, 1, NULL, 1) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(tiny_submit(model, 0, inputs, 1, &result, 2) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(tiny_to_layout(model, 0, 0, handle, &result) == TTCODEGEN_OK && result);
    tiny_release(handle);
    CHECK(tiny_describe_tensor(result, &tensor) == TTCODEGEN_OK);
    CHECK(tiny_to_layout(model, 0, 0, NULL, &handle) == TTCODEGEN_WRONG_ARGUMENT && !handle);
    CHECK(tiny_to_layout(model, 0, 7, result, &handle) == TTCODEGEN_WRONG_ARGUMENT);

    ttcodegen_model* beside = NULL;
    const uint32_t version = TTCODEGEN_API_VERSION;
    CHECK(tiny_open_beside(version + 1, NULL, model, &beside) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(tiny_open_beside(version, NULL, NULL, &beside) == TTCODEGEN_WRONG_ARGUMENT && !beside);
    CHECK(tiny_open_beside(version, argv[1], model, NULL) == TTCODEGEN_WRONG_ARGUMENT);
    CHECK(tiny_open_beside(version, argv[1], model, &beside) == TTCODEGEN_OK && beside);
    tiny_close(model);
    CHECK(tiny_draw_weights(beside, 0, 1) == TTCODEGEN_OK);
    inputs[0] = result;
    CHECK(tiny_submit(beside, 0, inputs, 1, &handle, 1) == TTCODEGEN_OK && handle);
    tiny_close(beside);
    CHECK(tiny_to_host(handle, &out) == TTCODEGEN_OK);
    tiny_release(handle);
    tiny_release(result);
    tiny_release(NULL);
    tiny_close(NULL);
    return 0;
}
"""


def test_the_c_api(built: tuple[Path, BuiltProject], tmp_path: Path, toolchain: Toolchain) -> None:
    out, project = built
    assert project.library is not None
    (tmp_path / "main.c").write_text(C_PROGRAM)
    compiler = shutil.which("gcc") or shutil.which("clang")
    assert compiler is not None
    options = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{out}/include"]
    files = [str(tmp_path / "main.c"), str(project.library), "-o", str(tmp_path / "main")]
    rpath = f"-Wl,-rpath,{project.library.parent}"
    subprocess.run([compiler, *options, *files, rpath], check=True)
    command = [str(tmp_path / "main"), str(out / "data")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_only_the_c_api_is_exported(built: tuple[Path, BuiltProject]) -> None:
    project = built[1]
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("nm is not installed")
    command = [nm, "-D", "--defined-only", str(project.library)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1] for line in text.splitlines()}
    # The standard library declares its templates visible whatever the compiler is reported.
    others = {n for n in names if not re.match(r"tiny_|_Z\w*?(St|9__gnu_cxx)", n)}
    assert others == set()
    assert ctypes.CDLL(str(project.library)).tiny_api_version() == 2
