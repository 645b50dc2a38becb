"""Uploads of a browser: the file in a multipart form (RFC 7578)."""

from __future__ import annotations

import re

from ttcodegen.foundation.diagnostics import CompileError

_BOUNDARY = re.compile(r'\bboundary="?([^";,\s]{1,70})"?')
_FILE = re.compile(rb'filename="((?:[^"\\\r\n]|\\.)*)"')


def uploaded_file(content_type: str, body: bytes) -> tuple[str, bytes]:
    """The name and the content of the first file.

    Raises:
        CompileError: if the body is no such form, or has no file.
    """
    found = _BOUNDARY.search(content_type)
    if not content_type.startswith("multipart/form-data") or found is None:
        raise CompileError("an upload is multipart/form-data with a file")
    delimiter = b"--" + found[1].encode()
    # The body begins with the first delimiter, without the line end that the others have.
    parts = (b"\r\n" + body).split(b"\r\n" + delimiter)
    for part in parts[1:]:
        head, separator, content = part.partition(b"\r\n\r\n")
        name = _FILE.search(head)
        if separator and name is not None:
            if part is parts[-1]:
                break  # Nothing ends it: the form was cut off.
            return name[1].decode("utf-8", "replace").replace('\\"', '"'), content
    raise CompileError("the upload has no file")
