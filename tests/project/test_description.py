"""Names of modules and files, and how executables draw values."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ttcodegen.compilation import CompiledModule
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.emission.description import DataFile, Drawing, TensorKind
from ttcodegen.emission.interface_description import module_name


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("mnist", "mnist"),
        ("resnet-18 (v2)", "resnet_18_v2"),
        ("test", "test_model"),
        ("All", "All_model"),
        ("support", "support_model"),
        ("rand", "rand_model"),
        ("tm", "tm_model"),
        ("dl", "dl_model"),
        ("class", "class_"),
        ("std", "std_"),
        ("2d", "model_2d"),
        ("", "model"),
    ],
)
def test_module_names_suit_cpp_and_cmake(stem: str, name: str) -> None:
    assert module_name(stem) == name


def test_weight_files_are_distinguished(compiled: CompiledModule) -> None:
    module = compiled.description
    forward = module.functions[0]
    weight = forward.weights[0]
    assert module.weight_file(forward, weight) == "forward.layer_weight"
    alone = dataclasses.replace(module, functions=(forward,))
    assert alone.weight_file(forward, weight) == "layer_weight"
    constant = DataFile("layer_weight", np.zeros(1))
    assert (
        dataclasses.replace(alone, data=(constant,)).weight_file(forward, weight)
        == "layer_weight.weight"
    )


def test_drawing_suits_the_tensor(compiled: CompiledModule) -> None:
    tensor = compiled.description.functions[0].arguments[0]
    assert tensor.effective_drawing == Drawing("uniform", -1, 1)
    weight = dataclasses.replace(tensor, kind=TensorKind.PARAMETER, shape=(3, 100, 4))
    assert weight.effective_drawing == Drawing("uniform", -0.1, 0.1)
    variance = dataclasses.replace(weight, name="layer.norm.running_var")
    assert variance.effective_drawing == Drawing("uniform", 0.5, 1.5)
    index = dataclasses.replace(tensor, data_type=DataType.INT32)
    assert index.effective_drawing == Drawing("integer", 0, 1)
    mask = dataclasses.replace(tensor, source_dtype="bool")
    assert mask.effective_drawing.distribution == "boolean"
    hinted = dataclasses.replace(tensor, drawing=Drawing("normal", 2, 3))
    assert hinted.effective_drawing == Drawing("normal", 2, 3)
