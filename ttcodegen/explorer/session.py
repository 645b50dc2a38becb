"""Commands of the REST interface, and the state of a session.

Source: the chapter "tt-explorer" of tt-mlir's book. A command is a JSON object with `cmdId`,
`extensionId`, `modelPath`, `settings` and `deleteAfterConversion`; its answer has the results in
`graphs`, and in `error` what is wrong.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ttcodegen.compilation import CompileOptions
from ttcodegen.emission.interface_description import name_of_file
from ttcodegen.explorer.access import Access
from ttcodegen.explorer.execution import METRICS, Execution, ResultsCache
from ttcodegen.explorer.graph import to_json
from ttcodegen.explorer.models import model_graphs
from ttcodegen.explorer.requests import Request, perform
from ttcodegen.explorer.stages import Settings, read_settings
from ttcodegen.explorer.workers import Workers
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import closest
from ttcodegen.optimizer.overrides.overrides import ANY, VERSION, read_overrides
from ttcodegen.optimizer.overrides.reference_options import entries_of_options
from ttcodegen.project.edits import tuned_files
from ttcodegen.project.tuning.override_entries import entries
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import DEFAULT_ARCHITECTURE

EXTENSION = "ttcodegen"
EXTENSIONS = (EXTENSION, "tt_adapter")
"""Accepted extension ids; the second belongs to tt-mlir's adapter."""
_FIELDS: Mapping[str, tuple[type, str]] = {
    "cmdId": (str, "a text"),
    "extensionId": (str, "a text"),
    "modelPath": (str, "a text"),
    "settings": (dict, "an object"),
    "deleteAfterConversion": (bool, "true or false"),
}
COMMANDS = (
    "convert",
    "initialize",
    "execute",
    "status_check",
    "override",
    "overrides",
    "choices",
    "code",
    "decisions",
    "models",
    "node_data",
    "synchronisation",
)
"""Commands; each is a method of `Session` and of the adapter."""
_MOST_AT_ONCE = 256 << 10
"""Size limit of models that are read in the event loop's thread."""
Entries = dict[str, dict[str, Any]]
"""Overrides by op name."""


@dataclass
class ModelState:
    """State of a model in a session."""

    overrides: dict[str, Entries] = field(default_factory=dict[str, Entries])
    """Overrides by function; `*` stands for any."""
    execution: Execution | None = None
    """Last execution."""


@dataclass(frozen=True)
class Command:
    """Parsed command."""

    name: str
    model: str
    settings: Mapping[str, Any]
    delete: bool


def read_command(content: object) -> Command:
    """Parses a command; raises CompileError if a field is missing or invalid."""
    if not isinstance(content, dict):
        raise CompileError("a command is a JSON object", remedy=f"with {', '.join(_FIELDS)}")
    given = cast("dict[str, Any]", content)
    for name, (kind, expected) in _FIELDS.items():
        if name not in given:
            raise CompileError(f"the command has no '{name}'", remedy=f"it is {expected}")
        if not isinstance(given[name], kind):
            raise CompileError(f"'{name}' of the command is wrong", remedy=f"it is {expected}")
    if given["extensionId"] not in EXTENSIONS:
        raise CompileError(
            f"there is no extension '{given['extensionId']}'", remedy=f"it is {EXTENSION}"
        )
    return Command(
        given["cmdId"], given["modelPath"], given["settings"], given["deleteAfterConversion"]
    )


class Session:
    """Models with their overrides and executions; commands may come from several threads.

    Sessions of several users share folders, workers and cached results.
    """

    def __init__(
        self,
        folders: Sequence[Path],
        settings: Settings | None = None,
        *,
        workers: Workers | None = None,
        listed: bool = False,
    ) -> None:
        """
        Args:
            folders: folders to read models from and to write results to.
            listed: whether to list the folders' models.
            settings: defaults of commands.
            workers: compute long requests; by default the command's thread does.
        """
        self._set_up(
            Access(folders, listed=listed), settings or Settings(), workers, ResultsCache()
        )

    def _set_up(
        self, access: Access, settings: Settings, workers: Workers | None, results: ResultsCache
    ) -> None:
        self.access = access
        self._settings = settings
        self._workers = workers
        self._results = results
        self._models: dict[Path, ModelState] = {}
        self._lock = threading.RLock()
        self._commands: Mapping[str, Callable[[Command], list[Any]]] = {
            name: getattr(self, name) for name in COMMANDS
        }
        self._requests: Mapping[str, Callable[[Command], Request]] = {
            "convert": self._request,
            "synchronisation": self._synchronisation_request,
            "choices": self._choices_request,
            "code": self._request,
            "decisions": self._request,
        }

    def of_another_user(self) -> Session:
        """Session with separate overrides and executions on the same folders."""
        session = Session.__new__(Session)
        session._set_up(self.access, self._settings, self._workers, self._results)
        return session

    @property
    def is_executing(self) -> bool:
        """Returns whether an execution is running."""
        with self._lock:
            return any(s.execution and not s.execution.is_done for s in self._models.values())

    def close(self) -> None:
        """Closes the session with its shared workers, and removes its temporary files."""
        if self._workers is not None:
            self._workers.close()
        self.access.close()

    def answer(self, content: object) -> dict[str, Any]:
        """Runs a command.

        Returns:
            The answer's JSON: `graphs`, and `error` if the command failed.
        """
        return json.loads(self.answer_text(content))

    def answer_text(self, content: object) -> bytes:
        """Runs a command; returns the answer as JSON text, without parsing large graphs."""
        try:
            return b'{"graphs": ' + self._text(read_command(content)) + b"}"
        except CompileError as error:
            text = json.dumps({"graphs": [], "error": error.render()}, ensure_ascii=False)
            return text.encode("utf-8", "replace")

    def kept_text(self, content: object) -> bytes | None:
        """Cached answer to a command on a small model file, as `answer_text`; None if there is
        none."""
        try:
            command = read_command(content)
            request_of = self._requests.get(command.name)
            if request_of is None or command.delete:
                return None
            request = request_of(command)
            size = request.path.stat().st_size if request.path.is_file() else _MOST_AT_ONCE + 1
            key = request.digest() if size <= _MOST_AT_ONCE else None
        except (CompileError, OSError):
            return None
        found = None if key is None else self._results.kept(key)
        return None if found is None else b'{"graphs": ' + found + b"}"

    def _text(self, command: Command) -> bytes:
        request_of = self._requests.get(command.name)
        if request_of is None:
            text = json.dumps(to_json(self.run(command)), ensure_ascii=False, allow_nan=False)
            return text.encode("utf-8", "replace")
        with self._deleting(command):
            return self._perform(request_of(command))

    def _perform(self, request: Request) -> bytes:
        compute = perform if self._workers is None else self._workers.perform
        key = request.digest()
        if key is None:
            return compute(request)
        return self._results.get(key, lambda: compute(request))

    def run(self, command: Command) -> list[Any]:
        """Runs a command; returns its results.

        Raises:
            CompileError: if there is no such command, or it fails.
        """
        found = self._commands.get(command.name)
        if found is None:
            close = closest(command.name, self._commands)
            raise CompileError(
                f"there is no command '{command.name}'",
                remedy=f"did you mean '{close}'?"
                if close
                else f"there are {', '.join(self._commands)}",
            )
        with self._deleting(command):
            return found(command)

    @contextmanager
    def _deleting(self, command: Command) -> Generator[None]:
        """Deletes an uploaded model after a command that requests it."""
        try:
            yield
        finally:
            if command.delete and command.name in ("convert", "execute"):
                self._forget(command)

    def _forget(self, command: Command) -> None:
        """Deletes an uploaded model once its execution ended; its results stay."""
        try:
            path = self.access.path(command.model)
        except CompileError:
            return  # The command has reported the error.
        with self._lock:
            state = self._models.get(path)
        if state is None or state.execution is None:
            self.access.forget_upload(path)
        else:
            state.execution.at_end(lambda: self.access.forget_upload(path))

    def _executed(self, command: Command) -> tuple[Path, Execution | None]:
        """Model and its last execution, which outlives a deleted upload."""
        path = self.access.path(command.model, gone=self._models)
        return path, self.state(path).execution

    def state(self, path: Path) -> ModelState:
        """State of a model."""
        with self._lock:
            return self._models.setdefault(path, ModelState())

    def _settings_of(self, command: Command) -> Settings:
        return read_settings(command.settings, self._settings)

    def options(
        self,
        path: Path,
        settings: Settings,
        *,
        run: bool = False,
        decided: Mapping[str, Entries] | None = None,
    ) -> CompileOptions:
        """Compile options of a model with its overrides.

        `decided` replaces the overrides; a run adds golden values.
        """
        overrides = ""
        optimize = settings.optimize if settings.target == "ttnn" else 0
        if optimize:
            overrides = self.overrides_text(path, settings, decided)
        golden = settings.seed if run and settings.target == "ttnn" else None
        return CompileOptions(
            name_of_file(path.name),
            settings.target,
            settings.arch,
            system=settings.system,
            optimize=optimize,
            weights=settings.weights,
            activations=settings.activations,
            overrides=overrides,
            golden_seed=golden,
        )

    # Commands

    def _request(self, command: Command, *names: str) -> Request:
        path = self.access.path(command.model)
        settings = self._settings_of(command)
        self.state(path)
        return Request(
            command.name,
            path,
            self.options(path, settings),
            settings.const_element_count_limit,
            settings.stages,
            names,
        )

    def _synchronisation_request(self, command: Command) -> Request:
        path = self.access.path(command.model)
        names: list[str] = []
        for side in ("left", "right"):
            name: Any = command.settings.get(side)
            if not isinstance(name, str):
                raise CompileError(
                    f"the setting '{side}' names no graph of '{path.name}'",
                    remedy="it is the id of a graph that 'convert' gave",
                )
            names.append(name)
        return self._request(command, *names)

    def _choices_request(self, command: Command) -> Request:
        self.access.path(command.model)
        node: Any = command.settings.get("node")
        function: Any = command.settings.get("function", "")
        if not isinstance(node, str) or not isinstance(function, str):
            raise CompileError("the setting 'node' is missing", remedy="it is the name of an op")
        return self._request(command, node, function)

    def _requested(self, command: Command) -> list[Any]:
        return json.loads(self._perform(self._requests[command.name](command)))

    def convert(self, command: Command) -> list[Any]:
        """Graphs of a model, and of its compile's stages."""
        return self._requested(command)

    def synchronisation(self, command: Command) -> list[Any]:
        """Corresponding nodes of the graphs `left` and `right` of the settings, to synchronize
        panes."""
        return self._requested(command)

    def choices(self, command: Command) -> list[Any]:
        """Decision of the optimizer for the op of the setting `node`, and legal ones."""
        return self._requested(command)

    def code(self, command: Command) -> list[Any]:
        """C++ of a model: files with their text, lines of ops, and user-edited lines."""
        return self._requested(command)

    def decisions(self, command: Command) -> list[Any]:
        """Decision of the optimizer for each op, with the session's overrides."""
        return self._requested(command)

    def graphs_of_stages(self, path: Path, stages: Sequence[str]) -> list[str]:
        """Graph ids of stages of a model.

        Raises CompileError if a stage is unknown, or the model cannot be compiled.
        """
        options = self.options(path, self._settings)
        return json.loads(self._perform(Request("stages", path, options, names=tuple(stages))))

    def initialize(self, command: Command) -> list[Any]:
        """Writes the description of the target system."""
        from ttcodegen.flatbuffer.system import write_ttsys

        settings = self._settings_of(command)
        system = settings.system or default_system(settings.arch or DEFAULT_ARCHITECTURE)
        path = self.access.own / f"{system.arch}.ttsys"
        path.write_bytes(write_ttsys(system))
        return [{"system_desc_path": str(path)}]

    def execute(self, command: Command) -> list[Any]:
        """Starts to compile, build, run and measure a model; `status_check` reports progress."""
        path = self.access.path(command.model)
        settings = self._settings_of(command)
        state = self.state(path)
        with self._lock:
            if any(s.execution and not s.execution.is_done for s in self._models.values()):
                raise CompileError(
                    "a model is being executed", remedy="wait until status_check says 'isDone'"
                )
            number = [*self._models].index(path)
            folder = self.access.own / "runs" / f"{number}-{path.name}"
            if settings.artifact_dir:
                folder = self.access.folder_to_write(settings.artifact_dir)
            last = state.execution
            # After a failed execution, compare with the one before it.
            before = None if last is None else last.measured or last.before
            options = self.options(path, settings, run=True)
            execution = Execution(path, settings, options, folder, before)
            execution.start()
            state.execution = execution
        return []

    def status_check(self, command: Command) -> list[Any]:
        """Progress of a model's execution, with messages and errors."""
        path, execution = self._executed(command)
        if execution is None:
            raise CompileError(f"'{path.name}' was not executed", remedy="the command is 'execute'")
        return [execution.report()]

    def override(self, command: Command) -> list[Any]:
        """Overrides fields of ops, by nodes.

        An empty value removes a field's override, no attributes remove a node's, and no overrides
        remove all.

        Raises:
            CompileError: if the optimizer refuses them; the previous ones then stay.
        """
        path = self.access.path(command.model)
        given: Any = command.settings.get("overrides")
        if not isinstance(given, dict):
            raise CompileError("the setting 'overrides' is missing", remedy="it is an object")
        state = self.state(path)
        changed = copy.deepcopy(state.overrides) if given else {}
        for node, wanted in cast("dict[str, Any]", given).items():
            _change(changed, node, wanted)
        read_overrides(_file(changed))
        if not _takes_back(state.overrides, changed):
            settings = self._settings_of(command)
            options = self.options(path, settings, decided=changed)
            self._perform(Request("decisions", path, options, settings.const_element_count_limit))
        with self._lock:
            state.overrides = changed
        return [{"success": True}]

    def overrides(self, command: Command) -> list[Any]:
        """Current overrides in the form of `ttcodegen --overrides`.

        For a project, the decisions of its C++, as `ttcodegen --edits` writes them.
        """
        path = self.access.path(command.model)
        taken = self.state(path).overrides
        if path.is_dir():
            taken = {function: dict(ops) for function, ops in entries(tuned_files(path)).items()}
        return [json.loads(_file(taken))]

    def overrides_text(
        self,
        path: Path,
        settings: Settings | None = None,
        decided: Mapping[str, Entries] | None = None,
    ) -> str:
        """Overrides as text, after tt-mlir's options if given; empty if there are none."""
        known = self.state(path).overrides if decided is None else decided
        functions = {name: dict(entries) for name, entries in known.items() if entries}
        if settings is not None and settings.override_options:
            given = entries_of_options(settings.override_options)
            functions[ANY] = {**given, **functions.get(ANY, {})}
        return _file(functions) if functions else ""

    def models(self, command: Command) -> list[Any]:
        """Models of past commands and listed models, each with whether it was executed."""
        with self._lock:
            known = {path: state.execution is not None for path, state in self._models.items()}
        for path in self.access.models():
            known.setdefault(path, False)
        return [
            {"path": str(path), "executed": executed}
            for path, executed in known.items()
            if path.exists()
        ]

    def node_data(self, command: Command) -> list[Any]:
        """Results of the last execution: a file of node data per metric, and its contents."""
        path, _ = self._executed(command)
        files = self.node_data_files(path)
        if not files:
            raise CompileError(f"'{path.name}' has no results", remedy="the command is 'execute'")
        return [
            {
                "metric": file.stem,
                "name": METRICS[file.stem][0],
                "path": str(file),
                "data": data,
            }
            for file, data in files.items()
        ]

    def node_data_files(self, path: Path) -> dict[Path, Any]:
        """Writes the results of a model's last execution, a file per metric, with its content.

        Empty without an execution or results.
        """
        execution = self.state(path).execution
        if execution is None or execution.measured is None:
            return {}
        graphs = execution.graphs
        if path.is_file():
            source = model_graphs(path, execution.options, stages=False)
            known = {graph.id for graph in graphs}
            graphs = [*(graph for graph in source if graph.id not in known), *graphs]
        return execution.measured.write_node_data(graphs, execution.folder)


def _file(functions: Mapping[str, Entries]) -> str:
    return json.dumps({"version": VERSION, "functions": functions}, indent=2) + "\n"


def _takes_back(before: Mapping[str, Entries], after: Mapping[str, Entries]) -> bool:
    """Returns whether overrides are a subset of the previous ones."""
    return all(
        before.get(function, {}).get(node, {}).get(key) == value
        for function, entries in after.items()
        for node, entry in entries.items()
        for key, value in entry.items()
    )


def _take_back(functions: dict[str, Entries], node: str, function: str) -> None:
    """Removes the overrides of a node, in any function for `*`."""
    for name in [*functions]:
        if function in (ANY, name):
            functions[name].pop(node, None)
            if not functions[name]:
                del functions[name]


def _change(functions: dict[str, Entries], node: str, wanted: object) -> None:
    """Applies one entry of the command `override`."""
    if wanted is None:
        wanted = {"attributes": []}
    if not isinstance(wanted, dict):
        raise CompileError(f"the override of '{node}' is no object")
    given = cast("dict[str, Any]", wanted)
    name = given.get("named_location") or node
    pairs: Any = given.get("attributes")
    function: Any = given.get("function", ANY)
    if not isinstance(name, str) or not isinstance(function, str) or not isinstance(pairs, list):
        raise CompileError(
            f"the override of '{node}' is wrong",
            remedy="it has 'named_location' and 'attributes', a list of objects with key and value",
        )
    if not pairs:
        _take_back(functions, name, function)
        return
    entries = functions.setdefault(function, {})
    entry = entries.setdefault(name, {})
    for pair in cast("list[Any]", pairs):
        if not isinstance(pair, dict) or "key" not in pair or "value" not in pair:
            raise CompileError(f"an attribute of '{node}' has no key or no value")
        attribute = cast("dict[str, Any]", pair)
        key, value = str(attribute["key"]), _value(attribute["value"])
        if value in ("", None):
            entry.pop(key, None)
        else:
            entry[key] = value
    if not entry:
        del entries[name]
    if not entries:
        del functions[function]


def _value(value: object) -> object:
    """Parses a field value of the page: numbers, lists and booleans are JSON texts."""
    if not isinstance(value, str):
        return value
    try:
        read: object = json.loads(value)
    except (ValueError, RecursionError):
        return value
    # No name in overrides is a number.
    return cast("object", read) if isinstance(read, list | dict | bool | int) else value
