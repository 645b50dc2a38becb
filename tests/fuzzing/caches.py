"""Cache folders that others planted something in, or that were damaged: what is not the user's own,
or not what was kept, is not used."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ttcodegen.emitc.formatting import FormattedTexts
from ttcodegen.foundation import cache
from ttcodegen.foundation.cache import is_intact, own_cache_folder, vouch_for, with_checksum

OTHER_USER = 4242
OWN, PLANTED = "int own;\n", "int planted;\n"
_TEXT, _SEAL, _OBJECT = "formatted/text", "backend/seal", "backend/lib/library.o"
_PLACES = (".", "formatted", _TEXT, _TEXT, "backend", _SEAL, "backend/lib", _OBJECT, _OBJECT)
_KINDS = ("missing", "file", "folder", "link", "pipe", "mode", "owner", "damage", "times")
_MODES = (0o000, 0o644, 0o666, 0o777, 0o722, 0o1777)


class PlantedError(Exception):
    """Something was used that nobody kept."""


def cache_mutant(numbers: random.Random) -> bytes:
    """Changes of a cache folder, in one to three places."""
    return json.dumps(
        [
            {
                "place": numbers.choice(_PLACES),
                "kind": numbers.choice(_KINDS),
                "mode": numbers.choice(_MODES),
                "seed": numbers.randrange(1000),
            }
            for _ in range(numbers.choice((1, 1, 2, 3)))
        ]
    ).encode()


def use_cache(data: bytes) -> None:
    """Keeps a text and a sealed object, changes them as `data` says, and asks for them again."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as name:
        top, home = Path(name, "top"), Path(name, "home")
        with (
            patch.dict(os.environ, {"TTCODEGEN_CACHE": str(top)}),
            patch.object(cache, "_home", lambda: home),
        ):
            try:
                _use(top / "ttcodegen", json.loads(data))
            finally:
                # A folder without rights cannot be removed by who is not root.
                for folder, _, _ in os.walk(name):
                    os.chmod(folder, 0o700)


def _use(folder: Path, changes: list[dict[str, Any]]) -> None:
    assert own_cache_folder() == folder
    texts = FormattedTexts(sys.executable, "style")
    kept = folder / _OBJECT
    kept.parent.mkdir(parents=True, mode=0o700)
    kept.write_bytes(b"own object")
    vouch_for(folder / _SEAL, [kept])
    (folder / "formatted").mkdir(mode=0o700)
    (folder / _TEXT).write_bytes(with_checksum(OWN.encode()))
    assert texts.find("text") == OWN
    assert is_intact(folder / _SEAL, by_content=True)
    for change in changes:
        _plant(folder, change)
    for asked in (texts, FormattedTexts(sys.executable, "style")):
        if asked.find("text") not in (OWN, None):
            raise PlantedError("a text that nobody kept was found")
    if is_intact(folder / _SEAL, by_content=True) and not _is_own(kept):
        raise PlantedError("a damaged object is taken for an intact one")
    texts.keep("text", OWN)
    if texts.find("text") not in (OWN, None):
        raise PlantedError("a text that nobody kept was found")
    texts.close()


def _is_own(kept: Path) -> bool:
    """True if the object is what was kept, and the user's own."""
    status = kept.lstat()
    return (
        not kept.is_symlink()
        and kept.read_bytes() == b"own object"
        and status.st_uid == os.geteuid()
        and not status.st_mode & 0o022
    )


def _plant(folder: Path, change: dict[str, Any]) -> None:
    """Makes one change; none where there is nothing to change any more."""
    path = folder / change["place"]
    kind = change["kind"]
    try:
        if kind in ("mode", "owner", "damage", "times"):
            _spoil(path, change)
            return
        # Others write into a folder only if it is open to them: what they leave is theirs.
        if change["place"] == ".":
            return
        _remove(path)
        if kind == "file":
            path.write_bytes(with_checksum(PLANTED.encode()))
        elif kind == "folder":
            path.mkdir()
        elif kind == "link":
            elsewhere = folder.parent / f"elsewhere{change['seed']}"
            elsewhere.write_bytes(with_checksum(PLANTED.encode()))
            path.symlink_to(elsewhere)
            path = elsewhere
        elif kind == "pipe":
            os.mkfifo(path)
        if kind != "missing":
            path.chmod(0o666)
    except OSError:
        pass


def _spoil(path: Path, change: dict[str, Any]) -> None:
    if change["kind"] == "mode":
        path.chmod(change["mode"])
    elif change["kind"] == "owner":
        os.chown(path, OTHER_USER, OTHER_USER)
    elif change["kind"] == "times":
        os.utime(path, (change["seed"], change["seed"]))
    elif path.is_file():
        data = bytearray(path.read_bytes())
        place = change["seed"] % len(data) if data else 0
        if change["seed"] % 3 == 0:
            del data[place:]
        elif data:
            data[place] ^= 1 + change["seed"] % 255
        path.write_bytes(data)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
