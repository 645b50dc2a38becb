"""The commands of the REST interface, and what outlives a request.

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
from ttcodegen.explorer.access import Access
from ttcodegen.explorer.execution import METRICS, Execution, ResultsCache
from ttcodegen.explorer.graph import to_json
from ttcodegen.explorer.models import model_graphs
from ttcodegen.explorer.requests import Request, perform
from ttcodegen.explorer.stages import Settings, read_settings
from ttcodegen.explorer.workers import Workers
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import closest
from ttcodegen.optimizer.overrides.overrides import ANY, VERSION, entries_of_options, read_overrides
from ttcodegen.project.edits import tuned_files
from ttcodegen.project.tuning.report import entries
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import DEFAULT_ARCHITECTURE

EXTENSION = "ttcodegen"
EXTENSIONS = (EXTENSION, "tt_adapter")
"""The ids that commands are for; the second is the id of tt-mlir's adapter."""
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
"""Each is a method of `Session`, and of the adapter."""
_MOST_AT_ONCE = 256 << 10
"""Bytes of a model that is read while nothing else is answered."""
Entries = dict[str, dict[str, Any]]
"""Overrides by the names of ops."""


@dataclass
class ModelState:
    """State of a model in a session."""

    overrides: dict[str, Entries] = field(default_factory=dict[str, Entries])
    """By function; `*` is whichever has the op."""
    execution: Execution | None = None
    """The last one."""


@dataclass(frozen=True)
class Command:
    """A command that was read."""

    name: str
    model: str
    settings: Mapping[str, Any]
    delete: bool


def read_command(content: object) -> Command:
    """The command in a JSON object; raises CompileError if a field is missing, or wrong."""
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
    """Models, their overrides and executions. Commands may come from several threads.

    Sessions of several users share the folders, the workers and the results that are kept.
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
            folders: where models may be read from, and results written to.
            listed: whether the models of the folders are offered to be opened.
            settings: what commands that do not say otherwise have.
            workers: compute what takes long; without them, the thread of the command does.
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
        """A session with overrides and executions of its own, on the same folders."""
        session = Session.__new__(Session)
        session._set_up(self.access, self._settings, self._workers, self._results)
        return session

    @property
    def is_executing(self) -> bool:
        """True if an execution is under way."""
        with self._lock:
            return any(s.execution and not s.execution.is_done for s in self._models.values())

    def close(self) -> None:
        """Ends the session and what it shares; what it kept for itself is removed."""
        if self._workers is not None:
            self._workers.close()
        self.access.close()

    def answer(self, content: object) -> dict[str, Any]:
        """Runs a command.

        Returns:
            The JSON of the answer: `graphs`, and `error` if the command could not be run.
        """
        return json.loads(self.answer_text(content))

    def answer_text(self, content: object) -> bytes:
        """Runs a command; the answer as JSON text, which large graphs are passed on as."""
        try:
            return b'{"graphs": ' + self._text(read_command(content)) + b"}"
        except CompileError as error:
            text = json.dumps({"graphs": [], "error": error.render()}, ensure_ascii=False)
            return text.encode("utf-8", "replace")

    def kept_text(self, content: object) -> bytes | None:
        """The answer to a command as `answer_text` gives it, if it is one that takes no time: the
        model is a small file, and its result is kept. Otherwise None."""
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
        """Runs a command; its results.

        Raises:
            CompileError: if there is no such command, or it cannot be run.
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
        """Deletes an uploaded model after a command that asks for it."""
        try:
            yield
        finally:
            if command.delete and command.name in ("convert", "execute"):
                self._forget(command)

    def _forget(self, command: Command) -> None:
        """Deletes an uploaded model, once nothing reads it any more; what is known of it stays."""
        try:
            path = self.access.path(command.model)
        except CompileError:
            return  # The command has said what is wrong with the path.
        with self._lock:
            state = self._models.get(path)
        if state is None or state.execution is None:
            self.access.forget_upload(path)
        else:
            state.execution.at_end(lambda: self.access.forget_upload(path))

    def _executed(self, command: Command) -> tuple[Path, Execution | None]:
        """A model and its last execution, which outlives an upload that was deleted after it."""
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
        """Compile options of a model: with its overrides, or those that were `decided`, and for a
        run with golden values."""
        overrides = ""
        optimize = settings.optimize if settings.target == "ttnn" else 0
        if optimize:
            overrides = self.overrides_text(path, settings, decided)
        golden = settings.seed if run and settings.target == "ttnn" else None
        return CompileOptions(
            path.name.partition(".")[0] or "model",
            settings.target,
            settings.arch,
            system=settings.system,
            optimize=optimize,
            weights=settings.weights,
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
        """The graphs of a model, and of the stages of its compile."""
        return self._requested(command)

    def synchronisation(self, command: Command) -> list[Any]:
        """Corresponding nodes of the graphs of the settings `left` and `right`: the mapping that
        lets two panes of Model Explorer follow each other."""
        return self._requested(command)

    def choices(self, command: Command) -> list[Any]:
        """Choice of the optimizer for the op of the setting `node`, and the legal ones."""
        return self._requested(command)

    def code(self, command: Command) -> list[Any]:
        """The C++ of a model: each file with its text, the lines of its ops, and those that a
        person has changed."""
        return self._requested(command)

    def decisions(self, command: Command) -> list[Any]:
        """Choice of the optimizer for each op, with the overrides of the session."""
        return self._requested(command)

    def graphs_of_stages(self, path: Path, stages: Sequence[str]) -> list[str]:
        """The ids of the graphs of some stages of a model; raises CompileError if it has none of
        that name, or cannot be compiled."""
        options = self.options(path, self._settings)
        return json.loads(self._perform(Request("stages", path, options, names=tuple(stages))))

    def initialize(self, command: Command) -> list[Any]:
        """Writes the description of the system that models are compiled for."""
        from ttcodegen.flatbuffer.system import write_ttsys

        settings = self._settings_of(command)
        system = settings.system or default_system(settings.arch or DEFAULT_ARCHITECTURE)
        path = self.access.own / f"{system.arch}.ttsys"
        path.write_bytes(write_ttsys(system))
        return [{"system_desc_path": str(path)}]

    def execute(self, command: Command) -> list[Any]:
        """Begins to compile, build, run and measure a model; `status_check` reports on it."""
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
            # One that failed has nothing to compare with, but the one before it may have.
            before = None if last is None else last.measured or last.before
            options = self.options(path, settings, run=True)
            execution = Execution(path, settings, options, folder, before)
            execution.start()
            state.execution = execution
        return []

    def status_check(self, command: Command) -> list[Any]:
        """Progress of the execution of a model, its messages and errors."""
        path, execution = self._executed(command)
        if execution is None:
            raise CompileError(f"'{path.name}' was not executed", remedy="the command is 'execute'")
        return [execution.report()]

    def override(self, command: Command) -> list[Any]:
        """Takes decisions for ops: fields and their values, by nodes. An empty value takes a
        decision back, no attributes those of a node, and no overrides at all all of them.

        Raises:
            CompileError: if the optimizer cannot follow them, which leaves those there were.
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
        """The decisions that were taken, as a file for `ttcodegen --overrides`: of a project those
        of its C++, which `ttcodegen --edits` writes as well."""
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
        """The same as text; empty if there are none. With options of tt-mlir those come first."""
        known = self.state(path).overrides if decided is None else decided
        functions = {name: dict(entries) for name, entries in known.items() if entries}
        if settings is not None and settings.override_options:
            given = entries_of_options(settings.override_options)
            functions[ANY] = {**given, **functions.get(ANY, {})}
        return _file(functions) if functions else ""

    def models(self, command: Command) -> list[Any]:
        """The models that commands were about so far, then the others of the folders that are
        listed, each with whether it was executed."""
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
        """Results of the last execution: a file of node data for each metric, and its contents."""
        path, _ = self._executed(command)
        files = self.node_data_files(path)
        if not files:
            raise CompileError(f"'{path.name}' has no results", remedy="the command is 'execute'")
        return [
            {
                "metric": file.stem,
                "name": METRICS[file.stem][0],
                "path": str(file),
                "data": json.loads(file.read_text("utf-8")),
            }
            for file in files
        ]

    def node_data_files(self, path: Path) -> list[Path]:
        """Writes what the last execution of a model found, a file for each metric; none if there
        was no execution, or it found nothing."""
        execution = self.state(path).execution
        if execution is None or execution.measured is None:
            return []
        graphs = execution.graphs
        if path.is_file():
            source = model_graphs(path, execution.options, stages=False)
            known = {graph.id for graph in graphs}
            graphs = [*(graph for graph in source if graph.id not in known), *graphs]
        return execution.measured.write_node_data(graphs, execution.folder)


def _file(functions: Mapping[str, Entries]) -> str:
    return json.dumps({"version": VERSION, "functions": functions}, indent=2) + "\n"


def _takes_back(before: Mapping[str, Entries], after: Mapping[str, Entries]) -> bool:
    """True if overrides hold nothing that they did not hold before."""
    return all(
        before.get(function, {}).get(node, {}).get(key) == value
        for function, entries in after.items()
        for node, entry in entries.items()
        for key, value in entry.items()
    )


def _take_back(functions: dict[str, Entries], node: str, function: str) -> None:
    """Removes what was decided for a node, in whichever function if that is `*`."""
    for name in [*functions]:
        if function in (ANY, name):
            functions[name].pop(node, None)
            if not functions[name]:
                del functions[name]


def _change(functions: dict[str, Entries], node: str, wanted: object) -> None:
    """Takes one entry of the command `override` over."""
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
    """Value of a field of the page: numbers, lists and truth values come as their JSON."""
    if not isinstance(value, str):
        return value
    try:
        read: object = json.loads(value)
    except (ValueError, RecursionError):
        return value
    # A name that happens to be a number is a name nowhere in overrides.
    return cast("object", read) if isinstance(read, list | dict | bool | int) else value
