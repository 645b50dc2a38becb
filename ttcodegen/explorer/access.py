"""File access of a session, confined to its folders and uploads."""

from __future__ import annotations

import html
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Container, Sequence
from pathlib import Path

from ttcodegen.foundation.diagnostics import CompileError

FILE_EXTENSIONS = ("mlir", "mlirbc", "ttir", "ttnn", "ttm")
"""File extensions of models that can be uploaded."""
PROJECT = "project.ttnn"
"""Pseudo file name of a project's folder on the page."""
_MOST_UPLOADED = 1 << 30
"""Limit on all uploads of a session in bytes; the server limits each upload."""

_MOST_LISTED = 500
_DEPTH_LISTED = 3


class Access:
    """Folders of a session: those of models, and a temporary one for uploads and results."""

    def __init__(self, folders: Sequence[Path], *, listed: bool = False) -> None:
        self._listed = listed
        self.own = Path(os.path.realpath(tempfile.mkdtemp(prefix="ttcodegen-explorer-")))
        self._folders = [Path(os.path.realpath(folder)) for folder in folders]
        self._uploaded = 0

    def close(self) -> None:
        """Removes uploads, and results without another folder."""
        shutil.rmtree(self.own, ignore_errors=True)

    def models(self) -> list[Path]:
        """Models in the folders, if listing is enabled: model files and projects.

        Skips projects' and hidden folders, and is limited in depth and number.
        """
        found: list[Path] = []
        folders = [(folder, 0) for folder in self._folders] if self._listed else []
        while folders and len(found) < _MOST_LISTED:
            folder, depth = folders.pop()
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError:
                continue  # Removed meanwhile, or not readable.
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if os.path.exists(os.path.join(entry.path, "manifest.json")):
                        found.append(Path(entry.path))
                    elif depth < _DEPTH_LISTED and not entry.name.startswith("."):
                        folders.append((Path(entry.path), depth + 1))
                elif entry.name.rpartition(".")[2] in FILE_EXTENSIONS:
                    found.append(Path(entry.path))
        return sorted(found[:_MOST_LISTED])

    def path(self, named: str, gone: Container[Path] = ()) -> Path:
        """Resolved path of an existing file or folder, or of one in `gone`.

        Raises:
            CompileError: if it is outside of the folders, or does not exist.
        """
        path = self._inside(named)
        path = path.parent if path.name == PROJECT and not path.exists() else path
        try:
            mode = os.stat(path).st_mode
        except (OSError, ValueError):
            if path in gone:
                return path
            raise CompileError(f"there is no file '{named}'") from None
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            # Opening a pipe blocks until there is a writer.
            raise CompileError(f"'{named}' is neither a file nor a folder")
        return path

    def folder_to_write(self, named: str) -> Path:
        """Folder for results; raises CompileError if it is outside of the folders."""
        path = self._inside(named)
        if os.path.isfile(path):
            raise CompileError(f"'{named}' is no folder")
        return path

    def _inside(self, named: str) -> Path:
        try:
            path = Path(os.path.realpath(os.path.expanduser(named))) if named else None
        except ValueError:
            path = None  # It has characters that no path can have.
        if path is None:
            raise CompileError("the path of the model is missing", remedy="name it as 'modelPath'")
        if not any(path.is_relative_to(folder) for folder in (*self._folders, self.own)):
            raise CompileError(
                f"'{named}' is in none of the folders that ttcodegen-explorer was started with",
                remedy="start it with the model, or with its folder",
            )
        return path

    def page_to(self, address: str) -> str:
        """URL of a temporary page that redirects to an address.

        The address holds the token, and command lines are visible to all users of the machine.
        """
        page = self.own / "open.html"
        text = html.escape(address)
        page.write_text(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={text}">\n'
            f'<title>ttcodegen-explorer</title><p><a href="{text}">Open the model</a>.\n'
        )
        return page.as_uri()

    def upload(self, name: str, content: bytes) -> Path:
        """Stores an uploaded model in a new folder until the session ends.

        Raises:
            CompileError: if the name is not that of a model, or the limit is reached.
        """
        base = Path(name.replace("\\", "/")).name
        if not base.strip(". ") or base.rpartition(".")[2] not in FILE_EXTENSIONS:
            endings = ", ".join(f".{extension}" for extension in FILE_EXTENSIONS)
            raise CompileError(
                f"'{base}' is no model by its name", remedy=f"models end in {endings}"
            )
        if self._uploaded + len(content) > _MOST_UPLOADED:
            raise CompileError("the uploads of this session have no room for more")
        uploads = self.own / "uploads"
        uploads.mkdir(exist_ok=True)
        path = Path(tempfile.mkdtemp(dir=uploads)) / base
        try:
            path.write_bytes(content)
        except (OSError, ValueError) as error:
            shutil.rmtree(path.parent, ignore_errors=True)
            raise CompileError(f"'{base}' cannot be kept: {error}") from None
        self._uploaded += len(content)
        return path

    def forget_upload(self, path: Path) -> None:
        """Removes an uploaded model; other files stay."""
        uploads = self.own / "uploads"
        if path.is_relative_to(uploads) and path != uploads and path.is_file():
            self._uploaded -= path.stat().st_size
            shutil.rmtree(path.parent, ignore_errors=True)


_BOUNDARY = re.compile(r'\bboundary="?([^";,\s]{1,70})"?')
_FILE = re.compile(rb'filename="((?:[^"\\\r\n]|\\.)*)"')


def uploaded_file(content_type: str, body: bytes) -> tuple[str, bytes]:
    """Name and content of the first file of a multipart form.

    Raises:
        CompileError: if the body is no such form, or has no file.
    """
    found = _BOUNDARY.search(content_type)
    if not content_type.startswith("multipart/form-data") or found is None:
        raise CompileError("an upload is multipart/form-data with a file")
    delimiter = b"--" + found[1].encode()
    # The first delimiter has no preceding line end.
    parts = (b"\r\n" + body).split(b"\r\n" + delimiter)
    for part in parts[1:]:
        head, separator, content = part.partition(b"\r\n\r\n")
        name = _FILE.search(head)
        if separator and name is not None:
            if part is parts[-1]:
                break  # Truncated form.
            return name[1].decode("utf-8", "replace").replace('\\"', '"'), content
    raise CompileError("the upload has no file")
