"""Readability of the C++ of five models, measured by counts."""

from __future__ import annotations

import os
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.emission.templates import clang_format_style
from ttcodegen.emitc.formatting import format_files
from ttcodegen.foundation.diagnostics import CompileError, Source

ROOT = Path(__file__).parents[2]
CORPUS = Path(os.environ.get("TTCODEGEN_CORPUS", "/nowhere"))
MODELS = {
    **{
        name: ROOT / "examples" / name / f"{name}.mlir" for name in ("digits", "cnn", "transformer")
    },
    **{name: CORPUS / f"{name}.mlir" for name in ("models__llama_attention", "models__resnet_hf")},
}
OTHERS = (
    "models__mnist",
    "models__yolo_v8",
    "models__single_blocks_and_layers__bert_encoder_layer",
    "models__single_blocks_and_layers__gemma_1_1_2b_decode_layer",
    "models__single_blocks_and_layers__vit_vision_layer",
    "models__single_blocks_and_layers__qwen_3_0_6b_prefill_layer",
    "models__single_blocks_and_layers__phi_1_prefill_layer",
)
"""Models that were printed by XLA, whose names are those of its instructions and passes."""
LONGEST_NAME = 64
LONGEST_FUNCTION = 120
MOST_ALIKE = 8
"""Limit of the occurrences of three equal statements in a file, numbers ignored."""
MOST_UNNAMED = 6


@cache
def sources(name: str) -> dict[str, str]:
    """The formatted sources of a model; the test is skipped where the model is not."""
    path = MODELS.get(name, CORPUS / f"{name}.mlir")
    if not path.exists():
        pytest.skip(f"{path.name} is in no folder of this machine")
    options = CompileOptions(name, style=clang_format_style())
    return compile_module(Source(path.name, path.read_text()), options).files


def function_lengths(text: str) -> dict[str, int]:
    """The lines of the functions of a file, by the beginnings of their signatures."""
    lengths: dict[str, int] = {}
    signature, start = "", 0
    for number, line in enumerate(text.splitlines()):
        if re.match(r"(static )?\w[\w:<>, ]* \w+\(", line):
            signature, start = line, number
        elif line == "}" and signature:
            lengths[signature] = number - start + 1
            signature = ""
    return lengths


def cpp(name: str) -> str:
    (found,) = [text for path, text in sources(name).items() if path.endswith(".cpp")]
    return found


@pytest.mark.parametrize("name", MODELS)
def test_variables_have_names_not_numbers(name: str) -> None:
    declared = re.findall(r"ttnn::Tensor (\w+) =", cpp(name))
    numbered = [variable for variable in declared if re.search(r"_\d+$", variable)]
    assert len(numbered) < len(declared) / 10, numbered
    assert not any("composite" in variable for variable in declared)


@pytest.mark.parametrize("name", OTHERS)
def test_variables_of_other_models_have_names_not_numbers(name: str) -> None:
    declared = re.findall(r"ttnn::Tensor (\w+) =", cpp(name))
    numbered = [variable for variable in declared if re.search(r"_\d+$", variable)]
    # Names of the source are numbers, too: `arg20_1`, `YOLOv8_output_concatenate_1188`.
    made = [variable for variable in numbered if not re.match(r"arg\d|\w+_output_", variable)]
    assert len(made) <= len(declared) / 8, made


@pytest.mark.parametrize("name", OTHERS)
def test_no_name_says_what_a_pass_did(name: str) -> None:
    names = set(re.findall(r"\b\w+", "".join(sources(name).values())))
    made = re.compile("fork_clone|permute(Source|Full)|reshape(Source|Full|Indices)")
    assert not [each for each in names if made.search(each)]


@pytest.mark.parametrize("name", [*MODELS, *OTHERS])
def test_variables_are_not_called_after_instructions_of_a_compiler(name: str) -> None:
    declared = set(re.findall(r"ttnn::Tensor (\w+) =", cpp(name)))
    instructions = {"custom_call", "dot", "convert", "select", "concatenate", "reduce", "compare"}
    assert not declared & instructions
    assert not [each for each in declared if re.search(r"reshapeStartIndices|^arg$", each)]


@pytest.mark.parametrize("name", [*MODELS, *OTHERS])
def test_functions_of_the_file_take_what_they_use(name: str) -> None:
    heads = re.findall(r"^static [^{;]*\{", cpp(name), re.MULTILINE)
    assert not [head for head in heads if "/*" in head]


@pytest.mark.parametrize("name", [*MODELS, *OTHERS])
def test_names_are_whole_and_say_nothing_twice(name: str) -> None:
    names = set(re.findall(r"\b[a-z]\w+", cpp(name).partition("namespace")[2]))
    program = f"{name.replace('__', '_')}"
    assert not [each for each in names - {program} if len(each) >= LONGEST_NAME]
    assert not [each for each in names if re.search(r"_(slice_slice|sum_shifted)$", f"_{each}")]
    assert not [each for each in names if "parametrizations" in each]


@pytest.mark.parametrize("name", [*MODELS, *OTHERS])
def test_statements_that_repeat_are_a_function(name: str) -> None:
    body = re.sub(r"\d+|\s+", "", cpp(name))
    statements = re.split(r"[;{}]\s*(?=ttnn::Tensor|ttnn::|[a-z_]+=)", body)
    runs = Counter(zip(statements, statements[1:], statements[2:], strict=False))
    run, count = runs.most_common(1)[0]
    assert count <= MOST_ALIKE, run


@pytest.mark.parametrize("name", [*MODELS, *OTHERS])
def test_parts_of_functions_are_named_for_what_they_compute(name: str) -> None:
    assert len(re.findall(r"^static .*_part(?:_\d+)?\(", cpp(name), re.MULTILINE)) <= 1


@pytest.mark.parametrize("name", [*MODELS, *OTHERS])
def test_functions_fit_on_a_page_or_two(name: str) -> None:
    lengths = function_lengths(cpp(name))
    assert lengths
    assert max(lengths.values()) <= LONGEST_FUNCTION, lengths


@pytest.mark.parametrize("name", [*MODELS, *OTHERS])
def test_memory_ends_with_variables(name: str) -> None:
    assert "deallocate" not in cpp(name)


def arguments(text: str) -> list[str]:
    """The arguments of a call, from the text after its opening parenthesis."""
    found, depth = [""], 0
    for character in text:
        if character in "([{":
            depth += 1
        elif character in ")]}":
            if not depth:
                break
            depth -= 1
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return found


@pytest.mark.parametrize("name", [*MODELS, *OTHERS])
def test_arguments_of_long_calls_have_names(name: str) -> None:
    text = re.sub(r"<[\w:, ]+>", "", cpp(name))
    for call in re.finditer(r"ttnn::\w[\w:]*\(", text):
        given = arguments(text[call.end() :])
        unnamed = [argument for argument in given if "=*/" not in argument]
        assert len(unnamed) <= MOST_UNNAMED, text[call.start() : call.end() + 200]


@pytest.mark.parametrize("name", ["digits", "models__llama_attention"])
def test_products_are_called_with_the_options_that_are_chosen(name: str) -> None:
    text = cpp(name)
    calls = re.findall(r"call::(?:matmul|linear)\(", text)
    assert calls
    assert text.count("struct MatmulOptions") <= 1
    assert text.count("/*program_config=*/") == text.count("Options& options = {}) {")
    assert "=*/std::nullopt" not in text


@pytest.mark.parametrize(
    ("name", "function", "count"),
    # Eight of the twelve bottlenecks are in two loops.
    [("models__llama_attention", "rotate", 2), ("models__resnet_hf", "bottleneck", 6)],
)
def test_equal_layers_are_one_function(name: str, function: str, count: int) -> None:
    text = cpp(name)
    assert len(re.findall(rf"^static .* {function}\(", text, re.MULTILINE)) == 1
    assert len(re.findall(rf"= {function}\(", text)) == count


@pytest.mark.parametrize("name", ["digits", "cnn", "models__resnet_hf"])
def test_equal_sequences_of_constants_are_one_function(name: str) -> None:
    wanted = {
        "digits": "load_parameter",
        "cnn": "fold_batch_norm",
        "models__resnet_hf": "fold_scale",
    }
    text = cpp(name)
    function = wanted[name]
    assert len(re.findall(rf"^static .* {function}\(", text, re.MULTILINE)) == 1
    assert text.count(f" {function}(") > 2


@cache
def device_sources(name: str) -> dict[str, str]:
    """The sources of a model as programs of the device, unformatted."""
    path = MODELS[name]
    if not path.exists():
        pytest.skip(f"{path.name} is in no folder of this machine")
    options = CompileOptions(name, target="ttmetal")
    return compile_module(Source(path.name, path.read_text()), options).files


@pytest.mark.parametrize("name", MODELS)
def test_programs_of_the_device_have_names_not_numbers(name: str) -> None:
    header = device_sources(name)["src/programs.hpp"]
    programs = re.findall(r"support::Workload (\w+);", header)
    numbered = [each for each in programs if re.search(r"_\d{1,2}$", each)]
    assert programs
    assert len(numbered) <= len(programs) / 10, numbered


DECLARED_ON_DEVICE = {
    "variables": (r"src/(?!programs)\w+\.cpp", r"DeviceTensor (\w+) ="),
    "members": (r"src/(?!programs)\w+\.hpp", r"DeviceTensor (\w+);"),
    "tensors of programs": (r"src/programs\w*\.cpp", r"DeviceTensor&? (\w+)"),
    "variables of kernels": (r"kernels/\w+\.cpp", r"(?:constexpr|const) (?:uint32_t|auto) (\w+) ="),
}
"""Files and declaration patterns of named things in device projects."""


@pytest.mark.parametrize("kind", DECLARED_ON_DEVICE)
@pytest.mark.parametrize("name", MODELS)
def test_what_is_on_the_device_has_names_not_numbers(name: str, kind: str) -> None:
    path, declaration = DECLARED_ON_DEVICE[kind]
    files = device_sources(name).items()
    texts = "".join(text for each, text in files if re.fullmatch(path, each))
    declared = re.findall(declaration, texts)
    numbered = [each for each in declared if re.search(r"_\d{1,2}$", each)]
    assert declared
    assert len(numbered) < len(declared) / 10, numbered


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_functions_of_programs_of_the_device_fit_on_a_page_or_two(name: str) -> None:
    files = device_sources(name)
    texts = {
        path: text for path, text in files.items() if re.match(r"(src|kernels)/\w+\.cpp$", path)
    }
    lengths: dict[str, int] = {}
    for path, text in format_files(texts, clang_format_style()).items():
        lengths |= {f"{path}: {head}": length for head, length in function_lengths(text).items()}
    assert any("Workload build(" in head for head in lengths)
    assert any("kernel_main()" in head for head in lengths)
    assert max(lengths.values()) <= LONGEST_FUNCTION, lengths


@pytest.mark.parametrize("name", ["digits", "transformer"])
def test_units_of_work_are_counted_in_plural(name: str) -> None:
    text = device_sources(name)["src/programs.cpp"]
    assert not re.findall(r"tiless|queriess|[2-9] (?:row of|output tile,)", text)


@pytest.mark.parametrize("name", MODELS)
def test_functions_run_programs_as_calls_that_give_tensors(name: str) -> None:
    text = device_sources(name)[f"src/{name.replace('__', '_')}.cpp"]
    assert "= run_" in text
    assert "deallocate" not in text
    assert len(re.findall(r"^ *run_\w+\(", text, re.MULTILINE)) == 0


def test_equal_sequences_of_programs_are_one_function_for_all_shapes() -> None:
    text = device_sources("models__resnet_hf")["src/models_resnet_hf.cpp"]
    functions = re.findall(r"^static support::DeviceTensor (fold_\w+)\(", text, re.MULTILINE)
    settings = re.findall(r"^const (Fold\w+)Settings ", text, re.MULTILINE)
    assert len(functions) <= 3, functions
    assert len(settings) > 3 * len(functions)
    assert len(re.findall(r"= (?:fold_scale|fold_weight)\(", text)) > 40


@pytest.mark.slow
def test_few_variables_of_all_modules_have_numbers() -> None:
    """Over every module of the corpus that compiles, unformatted; a tenth at most."""
    if not CORPUS.is_dir():
        pytest.skip("there is no corpus on this machine")
    declared: list[str] = []
    for path in sorted(CORPUS.glob("*.mlir")):
        try:
            files = compile_module(
                Source(path.name, path.read_text()), CompileOptions("model")
            ).files
        except CompileError:
            continue  # What is refused has other tests.
        for text in files.values():
            declared += re.findall(r"ttnn::Tensor (\w+) =", text)
    numbered = [name for name in declared if re.search(r"_\d+$", name)]
    assert declared
    assert len(numbered) < len(declared) / 10, Counter(numbered).most_common(20)
