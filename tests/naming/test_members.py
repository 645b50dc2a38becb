"""Structures of tensors: members nested as the modules of the source are."""

from __future__ import annotations

import pytest

from ttcodegen.naming.members import (
    Array,
    Struct,
    StructTypes,
    Tensor,
    array_counts,
    layout_of,
    next_element,
)


@pytest.mark.parametrize(
    ("titles", "paths"),
    [
        ("fc.weight fc.bias", "fc.weight fc.bias"),
        ("layers.0.w layers.1.w", "layers[0].w layers[1].w"),
        ("layers.0.w", "layers[0].w"),
        # The order of the source need not be that of the numbers, as in sorted keys of flax.
        (
            " ".join(f"l.{i}.w" for i in ("0", "1", "10", *"23456789")),
            " ".join(f"l[{i}].w" for i in ("0", "1", "10", *"23456789")),
        ),
        # A sequence whose activations have no weights is no array.
        ("net.0.weight net.2.weight", "net_0.weight net_2.weight"),
        ("0.weight 2.weight", "layers_0.weight layers_2.weight"),
        ("0.weight 1.weight", "layers[0].weight layers[1].weight"),
        ("Dense_0.kernel Dense_1.kernel", "Dense[0].kernel Dense[1].kernel"),
        ("keys_0 keys_1", "keys[0] keys[1]"),
        ("arg_0 arg_1", "arg_0 arg_1"),
        ("keys_1 keys_2", "keys_1 keys_2"),
        ("new.keys_0 new.keys_1", "new_keys[0] new_keys[1]"),
        # One name is a tensor and a module.
        ("norm norm.scale", "norm norm_scale"),
        ("norm.scale norm", "norm.scale norm_2"),
        ("a-b a_b", "a_b a_b_2"),
        ("stages.0.0.w stages.0.1.w stages.1.0.w", "stages_0[0].w stages_0[1].w stages_1[0].w"),
        # Stages of different lengths are members of their own.
        ("s.0.b.0.w s.0.b.1.w s.1.b.0.w", "s_0.b[0].w s_0.b[1].w s_1.b[0].w"),
        ("l1.0.c.w l1.1.c.w l2.0.c.w l2.0.d.w", "l1[0].c.w l1[1].c.w l2[0].c.w l2[0].d.w"),
        # Blocks that have little in common are no array.
        ("f.0.w f.1.a f.1.b", "f_0.w f_1.a f_1.b"),
    ],
)
def test_paths(titles: str, paths: str) -> None:
    assert " ".join(layout_of(titles.split()).paths) == paths


def test_a_member_that_some_elements_lack_is_optional() -> None:
    layout = layout_of(["b.0.conv.w", "b.0.down.w", "b.1.conv.w"])
    assert layout.paths == ("b[0].conv.w", "b[0].down.w", "b[1].conv.w")
    block = Struct(
        (("conv", Struct((("w", Tensor()),))), ("down", Struct((("w", Tensor(is_optional=True)),))))
    )
    assert layout.root == Struct((("b", Array(block, 2)),))
    assert layout.elements == {"b[0]": block, "b[1]": block}


def test_stages_of_blocks_share_one_structure() -> None:
    layout = layout_of(["l1.0.c.w", "l1.1.c.w", "l2.0.c.w", "l2.0.d.w", "l2.1.c.w"])
    assert len(set(layout.elements.values())) == 1
    assert StructTypes().name(layout.elements["l1[0]"], "Weights", "l1") == "LWeights"


def test_reserved_members_keep_their_names() -> None:
    assert layout_of(["programs"], ["programs"]).paths == ("programs_2",)
    assert layout_of([]).root == Struct(())


def test_equal_structures_of_a_module_are_one_type() -> None:
    types = StructTypes()
    one, other = Struct((("w", Tensor()),)), Struct((("v", Tensor()),))
    assert types.name(one, "Weights", "layers") == "LayerWeights"
    assert types.name(one, "Weights", "blocks") == "LayerWeights"
    assert types.name(one, "Constants", "layers") == "LayerConstants"
    assert types.name(other, "Weights", "layers") == "LayerWeights_2"


def test_neighbours_in_an_array() -> None:
    assert next_element("m.l[3].a.w", "m.l[4].a.w") == ("m.l", 3, "a.w")
    assert next_element("k[0]", "k[1]") == ("k", 0, "")
    assert next_element("s[0].b[1].w", "s[0].b[2].w") == ("s[0].b", 1, "w")
    for before, after in (("l[0].w", "l[2].w"), ("l[0].w", "l[1].v"), ("l[1].b[0]", "l[2].b[1]")):
        assert next_element(before, after) is None
    assert array_counts(["l[0].b[1]", "l[2].b[0]"]) == {"l": 3, "l[0].b": 2, "l[2].b": 1}
