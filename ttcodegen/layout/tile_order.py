"""The order of the numbers of a tile in memory: face by face, each face row by row."""

from __future__ import annotations

from ttcodegen.dialects.ttcore.tile import FACE_SIDE


def offset_in_tile(row: int, column: int, tile: tuple[int, int]) -> int:
    """How many numbers of the tile precede the one at a row and column, or before those at
    the rows and columns of arrays."""
    face_rows, face_columns = (min(side, FACE_SIDE) for side in tile)
    faces_in_a_row = tile[1] // face_columns
    face = (row // face_rows) * faces_in_a_row + column // face_columns
    return (face * face_rows + row % face_rows) * face_columns + column % face_columns


def place_in_tile(offset: int, tile: tuple[int, int]) -> tuple[int, int]:
    """The row and column of the number that has `offset` numbers before it."""
    face_rows, face_columns = (min(side, FACE_SIDE) for side in tile)
    faces_in_a_row = tile[1] // face_columns
    rest, column = divmod(offset, face_columns)
    face, row = divmod(rest, face_rows)
    return (
        (face // faces_in_a_row) * face_rows + row,
        (face % faces_in_a_row) * face_columns + column,
    )
