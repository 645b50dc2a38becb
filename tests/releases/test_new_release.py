"""The page on another release: of a small made-up wheel, and of the real ones where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.link_check import ROOT
from scripts.new_release import main, page
from scripts.release_kernels import DEVICE, KernelChange, kernel_changes
from scripts.release_symbols import Signature, compare, struct_fields
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.systems.releases import RELEASES

TENSOR = "tt::tt_metal::Tensor const&"
USED = [
    "ttnn::same(unsigned int)",
    f"ttnn::relu({TENSOR})",
    f"ttnn::add({TENSOR}, float, std::optional<bool> const&)",
    f"ttnn::subtract({TENSOR}, float, std::optional<bool> const&)",
    f"ttnn::sum({TENSOR})",
    f"ttnn::gone({TENSOR})",
    "tt::tt_metal::Tensor::dtype() const",
]
EXPORTED = [
    "ttnn::same(unsigned int)",
    "ttnn::relu(ttnn::Tensor const&)",
    "ttnn::operations::experimental::relu(ttnn::Tensor const&)",
    "ttnn::add(ttnn::Tensor const&, std::variant<unsigned int, int, float>)",
    "ttnn::add(ttnn::Tensor const&, ttnn::Tensor const&, bool, bool, bool)",
    "ttnn::subtract(ttnn::Tensor const&, std::variant<unsigned int, int, float>)",
    "ttnn::sum(ttnn::Tensor const&, bool)",
    "ttnn::Tensor::dtype() const",
    "ttnn::HostTensor::dtype() const",
]


def test_a_signature_is_read_from_a_demangled_name() -> None:
    found = Signature.parse("ttnn::f(std::array<int, 2ul>, void (*)(int, bool), ttnn::T const&)")
    assert found.name == "ttnn::f"
    assert found.parameters == ("std::array<int, 2ul>", "void (*)(int, bool)", "ttnn::T const&")
    assert found.short.parameters[0] == "array<int, 2ul>"
    assert Signature.parse("tt::T::g() const").suffix == "const"


def test_functions_are_told_apart_by_what_became_of_them() -> None:
    found = compare(USED, EXPORTED)
    assert found.same == ("ttnn::same(unsigned int)",)
    assert found.moved == (f"ttnn::relu({TENSOR})", "tt::tt_metal::Tensor::dtype() const")
    assert found.types["tt::tt_metal::Tensor", "ttnn::Tensor"] == 1
    together, appended, gone = found.changed
    assert together.names == ("ttnn::add", "ttnn::subtract")
    assert together.difference == (
        ("-", "2", "float"),
        ("-", "3", "optional<bool> const&"),
        ("+", "2", "variant<unsigned int, int, float>"),
    )
    assert appended.names == ("ttnn::sum",)
    assert appended.is_appended
    assert gone.names == ("ttnn::gone",)
    assert gone.new is None


HEADERS = {
    "old": {
        "api/compute/a.h": "ALWI void kept(uint32_t cb) { x(); }\n"
        "template <bool fast = false>\nALWI void other(uint32_t cb, int mode = 1) { x(); }\n"
        "ALWI void gone(uint32_t cb) { x(); }\n"
        "ALWI void started(uint32_t cb) { PACK((llk_pack_dest_init<X, false>())); }\n"
    },
    "new": {
        "api/compute/a.h": "template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>\n"
        "ALWI void kept(uint32_t cb, uint32_t line = 0) { x(); }\n"
        "ALWI void started(uint32_t cb) { x(); }\n",
        "api/compute/b.h": "ALWI void other(uint32_t cb, Mode mode = Mode::RC) { x(); }\n",
    },
}


def test_functions_of_kernels_are_looked_up_in_the_device_headers(tmp_path: Path) -> None:
    for wheel, headers in HEADERS.items():
        for name, text in headers.items():
            path = tmp_path / wheel / DEVICE / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    called = dict.fromkeys(("kept", "other", "gone", "started"), "api/compute/a.h")
    found = kernel_changes(called, tmp_path / "old", tmp_path / "new")
    assert found == [
        KernelChange("gone", "api/compute/a.h", ""),
        KernelChange(
            "other",
            "api/compute/a.h",
            "api/compute/b.h",
            ("<bool fast = false>(uint32_t cb, int mode = 1)",),
            ("(uint32_t cb, Mode mode = Mode::RC)",),
        ),
        KernelChange("started", "api/compute/a.h", "api/compute/a.h", is_short=True),
    ]


def test_fields_are_those_that_the_bindings_print(tmp_path: Path) -> None:
    binding = tmp_path / "_ttnn.so"
    binding.write_bytes(b"\0x\0Config(a={}, b={})\0Config(a={})\0Other(a=[{}])\0")
    assert struct_fields(binding) == {"Config": ("a", "b")}


def test_the_page_has_all_of_it() -> None:
    kernels = [KernelChange("mm_init", "api/compute/matmul.h", "")]
    fields = {"Config": (("a", "b"), ("a", "c", "b"))}
    text = page(("1.0.0", "2.0.0"), compare(USED, EXPORTED), kernels, fields, (["ttnn::add"], []))
    assert "     2 link once they are compiled again" in text
    assert "  ttnn::add  [has a row], ttnn::subtract\n    1.0.0  Tensor const&, float" in text
    assert "  ttnn::sum: + bool\n" in text
    assert "  ttnn::gone\n" in text
    assert "  api/compute/matmul.h: mm_init\n" in text
    assert "  Config: + c (designated initialisers need the order)\n" in text


@pytest.mark.slow
def test_the_page_of_a_known_release_has_its_rows(
    cpu_backend: CPUBackend, capsys: pytest.CaptureFixture[str]
) -> None:
    wheels = ROOT / "build" / "wheels"
    if any(not list(wheels.glob(f"ttnn-{release}-*.whl")) for release in RELEASES):
        pytest.skip("the wheels were not downloaded")
    library = cpu_backend.folder / "lib" / "libttcodegen_cpu.a"
    assert main([RELEASES[-1], "--library", str(library)]) == 0
    text = capsys.readouterr().out
    assert "tt::tt_metal::Tensor is ttnn::Tensor" in text
    assert "  ttnn::argmax  [has a row]\n" in text
    assert "MatmulMultiCoreReuseProgramConfig: + allowed_worker_cores (at the end)" in text
