"""Programs whose kernels differ in names only have the same kernels."""

from __future__ import annotations

from tests.ttmetal.function_text import call, function, tensor
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.diagnostics import Source

SMALL, LARGE = tensor((64, 96), "bf16"), tensor((512, 512), "bf16")


def kernels_of(types: list[str], ops: list[str]) -> dict[str, str]:
    """The kernels of a function of those ops, each of which gives a result, by their files."""
    given = ", ".join(op.rsplit("-> ", 1)[1] for op in ops)
    results = ", ".join(f"%{number}" for number in range(len(ops)))
    text = function("several", types, ops, f"{results} : {given}")
    files = compile_module(Source("several.mlir", text), CompileOptions("several", "ttmetal")).files
    return {
        path.removeprefix("kernels/"): text
        for path, text in files.items()
        if path.startswith("kernels/") and "/blocks/" not in path
    }


def test_kernels_of_a_single_program_are_named_after_its_tensors() -> None:
    kernels = kernels_of([LARGE], [call("exp", ["%a0"], [LARGE], LARGE)])
    assert set(kernels) == {"read_exp.cpp", "compute_exp.cpp", "write_exp.cpp"}
    assert "a0_address" in kernels["read_exp.cpp"]


def test_kernels_that_differ_in_names_only_are_one() -> None:
    ops = [call("exp", ["%a0"], [SMALL], SMALL), call("sin", ["%a1"], [LARGE], LARGE)]
    kernels = kernels_of([SMALL, LARGE], ops)
    assert set(kernels) == {
        "read_tiles.cpp",
        "compute_exp.cpp",
        "compute_sin.cpp",
        "write_tiles.cpp",
    }
    for name, tensor_name in (("read", "input"), ("write", "output")):
        text = kernels[f"{name}_tiles.cpp"]
        assert f"{tensor_name}_address = get_arg_val" in text
        assert f'get_named_compile_time_arg_val("cb_{tensor_name}")' in text


def test_kernels_of_the_same_ops_keep_their_name() -> None:
    ops = [call("exp", [f"%a{i}"], [type_], type_) for i, type_ in enumerate((SMALL, LARGE))]
    kernels = kernels_of([SMALL, LARGE], ops)
    assert set(kernels) == {"read_exp.cpp", "compute_exp.cpp", "write_exp.cpp"}
    assert "Reads the input tiles of exp." in kernels["read_exp.cpp"]


def test_kernels_of_other_data_types_differ() -> None:
    """The text of a kernel says what its circular buffers hold."""
    wide = tensor((64, 96), "f32")
    ops = [call("exp", ["%a0"], [SMALL], SMALL), call("exp", ["%a1"], [wide], wide)]
    writers = [text for name, text in kernels_of([SMALL, wide], ops).items() if "write" in name]
    assert sorted("f32" in text for text in writers) == [False, True]
