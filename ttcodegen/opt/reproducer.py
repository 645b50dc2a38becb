"""What reproduces the failure of a pass: the module before it, and the passes from it on."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.transforms.registry import Step, parse_pipeline, pipeline_text

_PIPELINE = re.compile(
    r'\{-#.*?mlir_reproducer\s*:\s*\{[^{}]*?pipeline\s*:\s*"((?:[^"\\]|\\.)*)"', re.DOTALL
)
_FOOTER = """
{{-#
  external_resources: {{
    mlir_reproducer: {{
      pipeline: "{pipeline}",
      disable_threading: true,
      verify_each: {verify}
    }}
  }}
#-}}
"""


def write_reproducer(
    path: str | None, module_text: str, steps: Sequence[Step], *, verify: bool
) -> str:
    """Writes a reproducer, as MLIR's tools write and read it; gives the name of the file.

    Raises:
        CompileError: if it cannot be written.
    """
    pipeline = pipeline_text(steps).replace("\\", "\\\\").replace('"', '\\"')
    text = module_text + _FOOTER.format(pipeline=pipeline, verify=str(verify).lower())
    try:
        if path is None:
            with tempfile.NamedTemporaryFile(
                "w", prefix="ttcodegen-opt-", suffix=".mlir", delete=False, encoding="utf-8"
            ) as file:
                file.write(text)
                return file.name
        Path(path).write_text(text, "utf-8")
    except OSError as error:
        raise CompileError(f"the reproducer cannot be written: {error}") from None
    return path


def reproduced_steps(source: Source) -> list[Step]:
    """The passes that a reproducer runs.

    Raises:
        CompileError: if the text is no reproducer.
    """
    match = _PIPELINE.search(source.text)
    if match is None:
        raise CompileError(
            "this is no reproducer: it names no pipeline",
            remedy="reproducers end with {-# external_resources: {mlir_reproducer: ...} #-}",
        )
    return parse_pipeline(re.sub(r"\\(.)", r"\1", match.group(1)))
