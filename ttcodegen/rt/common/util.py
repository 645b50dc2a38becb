"""`from ttcodegen.rt.common.util import Logger, Artifacts`, as scripts for ttrt write it."""

from ttcodegen.rt.commands.command import Artifacts, Logger

__all__ = ["Artifacts", "Logger"]
