"""Rows of the building blocks of kernels, which come with a project (kernels/blocks)."""

from __future__ import annotations

from ttcodegen.dialects.ttkernel.attributes import ThreadType
from ttcodegen.dialects.ttkernel.definition import (
    ANY_THREAD,
    DATA_MOVEMENT,
    CallForm,
    Engine,
    KernelFunction,
    KernelOp,
    calls,
    row,
)

_ELEMENTS = "blocks/tile_elements.hpp"
_CACHE = "blocks/tile_cache.hpp"
_KEPT = "blocks/kept_tiles.hpp"
_ORDER = "blocks/row_order.hpp"


def _block(
    name: str,
    operands: str,
    cpp: KernelFunction,
    *,
    attributes: str = "",
    results: str = "",
    pure: bool = False,
) -> KernelOp:
    return row(
        f"blocks.{name}",
        operands,
        cpp,
        threads=DATA_MOVEMENT,
        attributes=attributes,
        results=results,
        pure=pure,
    )


def _on_elements(name: str, operands: str = "", results: str = "") -> KernelOp:
    """What is done to the elements of the tile at an address."""
    return _block(
        name,
        f"address:l1_addr {operands}",
        calls(_ELEMENTS, f"blocks::{name}", template_words="element"),
        attributes="element:element",
        results=results,
    )


def _push(name: str, attributes: str = "") -> KernelOp:
    """How a page comes to the circular buffer that kept tiles are for."""
    return _block(
        f"kept_tiles.{name}",
        "kept_tiles:kept_tiles page:int",
        calls(_KEPT, name, template_words=attributes.partition(":")[0], form=CallForm.METHOD),
        attributes=attributes,
    )


def _cache(name: str) -> KernelOp:
    """A cache of the elements of a tensor."""
    return _block(
        name,
        "tensor:accessor memory:cb",
        calls(_CACHE, f"blocks::{name}", template_words="element height width slots"),
        attributes="element:element height:i32 width:i32 slots:i32",
        results="tile_cache:tile_cache",
    )


def _of_cache(name: str, operands: str, results: str = "") -> KernelOp:
    return _block(
        f"tile_cache.{name}",
        f"tile_cache:tile_cache {operands}",
        calls(_CACHE, name, form=CallForm.METHOD),
        results=results,
    )


def _of_order(name: str, operands: str, results: str = "") -> KernelOp:
    return _block(
        f"row_order.{name}",
        f"row_order:row_order {operands}",
        calls(_ORDER, name, form=CallForm.METHOD),
        results=results,
    )


def _printing(name: str, operands: str, threads: frozenset[ThreadType]) -> KernelOp:
    """Debug output of elements."""
    function = calls("blocks/printing.hpp", f"blocks::{name}", template_words="printed")
    return row(f"blocks.{name}", operands, function, threads=threads, attributes="printed:printed")


BLOCK_ROWS: tuple[KernelOp, ...] = (
    _on_elements("elements_at", results="elements:l1_ptr"),
    _block(
        "set_element",
        "elements:l1_ptr row:int column:int value:int",
        calls(_ELEMENTS, "blocks::set_element"),
    ),
    _on_elements("fill_padding", "first_row:int first_column:int value:int"),
    _on_elements("fill_triangle", "value:int"),
    _block(
        "read_first_row",
        "page:int tensor:accessor address:l1_addr",
        calls("blocks/tile_rows.hpp", "blocks::read_first_row", template_words="element"),
        attributes="element:element",
    ),
    _on_elements("repeat_first_row"),
    _on_elements("repeat_first_column"),
    _on_elements("repeat_first_element"),
    _block(
        "push_reduce_scaler",
        "cb_scaler:cb",
        calls("blocks/reduce_scaler.hpp", "blocks::push_reduce_scaler"),
    ),
    _block(
        "clear_gaps",
        "address:l1_addr rows:int row_bytes:int distance:int bytes:int",
        calls("blocks/packed_rows.hpp", "blocks::clear_gaps"),
    ),
    _block(
        "keep_tiles",
        "tensor:accessor memory:cb target:cb",
        calls(_KEPT, "blocks::keep_tiles", template_words="slots"),
        attributes="slots:i32",
        results="kept_tiles:kept_tiles",
    ),
    _push("push"),
    _push("push_first_row", "element:element"),
    _push("push_first_column", "element:element"),
    _push("push_first_element", "element:element"),
    _cache("cache_tiles"),
    _cache("cache_rows"),
    _of_cache("element", "number:int", "value:int"),
    _of_cache("copy_element", "number:int target:l1_ptr row:int column:int"),
    _of_cache(
        "copy_row", "number:int stride:int count:int target:l1_ptr row:int column:int"
    ),
    _block(
        "order_rows",
        "memory:cb",
        calls(
            _ORDER,
            "blocks::order_rows",
            template_words="kept number descending nan_is_least",
        ),
        attributes="kept:i32 number:number descending:bool nan_is_least:bool",
        results="row_order:row_order",
    ),
    _block(
        "scatter_row",
        "indices:tile_cache elements:tile_cache first:int count:int target:l1_ptr row:int "
        "first_column:int",
        calls(
            "blocks/scattering.hpp",
            "blocks::scatter_row",
            template_words="width columns number reduction",
        ),
        attributes="width:i32 columns:i32 number:number reduction:reduction",
    ),
    row(
        "blocks.unary_bcast_init_short",
        "in_cb:cb",
        calls(
            "blocks/broadcast_init.hpp",
            "blocks::unary_bcast_init_short",
            template_words="bcast_type",
        ),
        attributes="bcast_type:bcast_type",
        engine=Engine.INIT,
    ),
    _printing("print_tile", "address:l1_addr", ANY_THREAD),
    _printing("print_row", "address:l1_addr count:int", DATA_MOVEMENT),
    _of_order("sort", "elements:tile_cache first:int count:int"),
    _of_order("place", "position:int", "place:int"),
)  # fmt: skip
