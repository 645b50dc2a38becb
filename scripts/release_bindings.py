"""Compares the parameters of the Python packages of two releases of ttnn: names and defaults.

    scripts/release_bindings.py ttnn70/bin/python ttnn81/bin/python

Symbols of the libraries have types only (scripts/new_release.py); the bindings state the names of
parameters and what they assume, which C++ assumes as well as far as public sources show. Prints a
table in Markdown of the functions that programs of ttcodegen call.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

# The package beside this file, whatever other checkout is installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ttcodegen.judging.mocked_device import environment
from ttcodegen.judging.python_calls import CALLS, PythonCall

_QUERY = """
import json, sys, ttnn
found = {}
for name in json.load(sys.stdin):
    function = ttnn
    for part in name.split("."):
        function = getattr(function, part, None)
    function = getattr(function, "function", function)
    stated = getattr(type(function), "__call__", None)
    overloads = getattr(stated, "__nb_signature__", ())
    found[name] = [[each[0], *map(repr, (each[2] if len(each) > 2 else None) or ())]
                   for each in overloads]
print(json.dumps(found))
"""
_PARAMETER = re.compile(r"(\w+): (.*?)(?: = \\(\d+))?$", re.DOTALL)
_PLACE = re.compile(r"ttnn\._ttnn\.(?:\w+\.)*")

Parameters = dict[str, str]
"""Defaults of parameters by their names, empty where there is none."""


def parameters(overloads: Sequence[Sequence[str]]) -> Parameters:
    """The parameters of all overloads of a function.

    Args:
        overloads: the signature of each, as nanobind states it, and its defaults.
    """
    found: Parameters = {}
    for signature, *defaults in overloads:
        inner = signature[signature.index("(") + 1 : signature.rindex(")")]
        for part in _split(inner):
            match = _PARAMETER.match(part)
            if match is not None:
                found[match[1]] = defaults[int(match[3])] if match[3] else ""
    return found


def _split(text: str) -> Iterator[str]:
    """The parts between commas that are in no brackets."""
    depth = first = 0
    for place, letter in enumerate(text):
        depth += (letter in "[(") - (letter in ")]")
        if letter == "," and depth == 0:
            yield text[first:place].strip()
            first = place + 1
    yield text[first:].strip()


def stated(python: str, names: Sequence[str]) -> dict[str, Parameters]:
    """The parameters of functions in the package that a Python has; none of one that it lacks."""
    done = subprocess.run(
        [python, "-c", _QUERY],
        input=json.dumps(list(names)),
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    overloads = json.loads(done.stdout.splitlines()[-1])
    return {name: parameters(each) for name, each in overloads.items()}


def changes(old: Mapping[str, Parameters], new: Mapping[str, Parameters]) -> Iterator[list[str]]:
    """The rows of the table: functions, what came, what went, and other defaults. Functions with
    the same changes share a row."""
    together: dict[tuple[str, ...], list[str]] = {}
    for name in sorted(old.keys() & new.keys()):
        before, after = old[name], new[name]
        came = [f"`{key}={after[key]}`" for key in after if key not in before]
        went = [f"`{key}`" for key in before if key not in after]
        other = [
            f"`{key}`: `{_PLACE.sub('', before[key])}`, now `{_PLACE.sub('', after[key])}`"
            for key in before
            if key in after and before[key] != after[key] and "MemoryConfig" not in after[key]
        ]
        if came or went or other:
            row = tuple(", ".join(each) for each in (came, went, other))
            together.setdefault(row, []).append(f"`{name}`")
    for row, names in together.items():
        yield [", ".join(names), *row]


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("old", help="the Python that the package of one release is installed in")
    parser.add_argument("new", help="that of the other")
    options = parser.parse_args(arguments)
    names = sorted(
        {(isinstance(call, PythonCall) and call.callee) or name for name, call in CALLS.items()}
    )
    found = [stated(python, names) for python in (options.old, options.new)]
    print("| functions | came, and what is assumed | went | other defaults |")
    print("|---|---|---|---|")
    for row in changes(*found):
        print(f"| {' | '.join(row)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
