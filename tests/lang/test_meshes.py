"""Operations on meshes of devices: each device runs them on its parts of the tensors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lang.running import PROGRAMS, failure, run_file, run_text
from tests.lang.test_examples import check
from ttcodegen.cli.lang import main
from ttcodegen.lang import ttnn

PRODUCT = (PROGRAMS / "meshes.py").read_text()


@pytest.mark.parametrize(
    ("division", "shape"), [("rows", (32, 64)), ("sums", (128, 64)), ("blocks", (128, 64))]
)
def test_products_divided_among_devices(division: str, shape: tuple[int, int]) -> None:
    check("meshes", division, tolerance=1e-5)
    assert run_file("meshes", division)["shape"] == shape


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("mesh = ttnn.open_mesh_device(ttnn.MeshShape(1, 8))", "has 8 devices, but there are 4"),
        ("ttnn.to_torch(y)", "the tensor has parts on 4 devices"),
        ("tensor(b[:, :63], ttnn.ShardTensorToMesh(mesh, 1))",
         "4 devices cannot share 63 elements"),
        ("tensor(b, ttnn.ShardTensorToMesh(mesh, 2))", "has no dimension 2"),
        ("ttnn.ShardTensor2dMesh(mesh, (4, 1), (0, 1))", "has the shape (1, 4), not (4, 1)"),
        ("ttnn.ConcatMesh2dToTensor(mesh, (2, 2), (0, 1))", "has the shape (1, 4), not (2, 2)"),
        ("ttnn.all_reduce(y, cluster_axis=2)", "has no cluster_axis 2"),
        ("product(y, tensor(b, None), ttnn.zeros((32, 64)))", "others are not"),
        ("ttnn.all_reduce(ttnn.ones((32, 32)))", "is on no mesh of devices"),
        ("product(y, tensor(b, ttnn.ReplicateTensorToMesh(ttnn.open_mesh_device())), y)",
         "the tensors are on several meshes"),
    ],
)  # fmt: skip
def test_what_devices_cannot_do_is_reported(statement: str, message: str) -> None:
    assert message in failure(PRODUCT + statement + "\n")


def test_a_tensor_on_several_devices_can_be_copied() -> None:
    held = run_text(PRODUCT + "import copy\nsame = copy.copy(y)\n")
    assert held["same"].parts == held["y"].parts  # type: ignore[attr-defined]


def test_a_captured_tensor_on_several_devices_has_no_slices() -> None:
    text = PRODUCT.replace("ttl.copy(b[k, column]", "ttl.copy(kept[k, column]")
    text = text.replace("    product(", "    kept = tensor(b, None)\n    product(", 1)
    assert "is on several devices, so it has no slices" in failure(text)


def test_the_command_line_says_how_many_devices_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "devices.py"
    program.write_text("import ttnn\nprint(ttnn.GetNumAvailableDevices())\n")
    try:
        assert main([str(program), "--num-devices", "2"]) == 0
    finally:
        ttnn.set_num_devices(4)
    assert capsys.readouterr().out == "2\n"
