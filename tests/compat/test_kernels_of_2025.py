"""Ops of kernels in the spellings of the book of 2025."""

from __future__ import annotations

from pathlib import Path

import pytest

from ttcodegen.cli import opt, translate

KERNEL = """
func.func @kernel() attributes {ttkernel.thread = #ttkernel.thread<noc>} {
  %c1 = arith.constant 1 : i32
  %c0 = arith.constant 0 : i32
  %x = arith.constant 18 : i32
  %address = arith.constant 4096 : i32
  %there = "ttkernel.get_noc_addr"(%x, %x, %address) : (i32, i32, i32) -> !ttkernel.noc_addr
  "ttkernel.noc_semaphore_inc"(%there, %c1, %c0) : (!ttkernel.noc_addr, i32, i32) -> ()
  %ready = "ttkernel.get_semaphore"(%c0) : (i32) -> !ttkernel.l1_addr
  %all = "ttkernel.get_noc_multicast_addr"(%x, %x, %x, %x, %address)
      : (i32, i32, i32, i32, i32) -> !ttkernel.noc_addr
  "ttkernel.noc_semaphore_set_multicast"(%ready, %all, %c1)
      <{linked = false, multicast_path_reserve = true}>
      : (!ttkernel.l1_addr, !ttkernel.noc_addr, i32) -> ()
  "ttkernel.noc_semaphore_set_multicast_loopback_src"(%ready, %all, %c1)
      <{linked = true, multicast_path_reserve = true}>
      : (!ttkernel.l1_addr, !ttkernel.noc_addr, i32) -> ()
  %pointer = "ttkernel.reinterpret_cast<volatile tt_l1_ptr uint32_t*>"(%ready)
      : (!ttkernel.l1_addr) -> !ttkernel.l1_addr_ptr
  "ttkernel.store_to_l1"(%c1, %pointer, %c0) : (i32, !ttkernel.l1_addr_ptr, i32) -> ()
  "ttkernel.return"() : () -> ()
}
"""

BODY = """
    const uint64_t there = get_noc_addr(x, x, address);
    noc_semaphore_inc(there, 1, 0);
    const uint32_t ready = get_semaphore(0);
    const uint64_t all = get_noc_multicast_addr(x, x, x, x, address);
    noc_semaphore_set_multicast(ready, all, 1);
    noc_semaphore_set_multicast_loopback_src(ready, all, 1, true);
    const auto pointer = reinterpret_cast<volatile tt_l1_ptr uint32_t*>(ready);
    pointer[0] = 1;
"""


def test_semaphores_and_stores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = tmp_path / "kernel.mlir"
    module.write_text(KERNEL, "utf-8")
    assert translate.main(["--ttkernel-to-cpp", str(module)]) == 0
    assert BODY in capsys.readouterr().out
    # What is printed is read again.
    assert opt.main([str(module)]) == 0
    module.write_text(capsys.readouterr().out, "utf-8")
    assert translate.main(["--ttkernel-to-cpp", str(module)]) == 0
    assert BODY in capsys.readouterr().out
