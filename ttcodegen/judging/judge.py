"""Makes the calls of files with the real library.

Runs in the Python that ttnn is installed in. Reads JSON from the file that it is given, then from
each whose path comes as a line of the standard input, writes a line of JSON for each call, what the
library said or the layout of its result, and one after each file.
"""

import importlib.util
import json
import os
import resource
import sys
import time
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import mocked_device
import numpy as np

DTYPES = {
    "bf16": "bfloat16", "f32": "float32", "bfp_bf8": "bfloat8_b", "bfp_bf4": "bfloat4_b",
    "u32": "uint32", "u16": "uint16", "u8": "uint8", "si32": "int32",
}  # fmt: skip

_REMOVED = ("use_multicore",)
"""Parameters that a later release has no more, for what it always does."""


class Judge:
    """Device and the tensors produced so far."""

    def __init__(self, ttnn, device):
        self.ttnn = ttnn
        self.device = device
        self.tensors = {}
        self.names = {getattr(ttnn, name): key for key, name in DTYPES.items()}

    def memory(self, spec):
        """Converts a memory config."""
        ttnn = self.ttnn
        layout = getattr(ttnn.TensorMemoryLayout, spec["layout"].upper())
        buffer = getattr(ttnn.BufferType, spec["buffer"].upper())
        if not spec.get("shards"):
            return ttnn.MemoryConfig(layout, buffer)
        shards = spec["shards"]
        orientation = getattr(ttnn.ShardOrientation, shards["orientation"].upper())
        shard = ttnn.ShardSpec(self.cores(shards["ranges"]), shards["shape"], orientation)
        return ttnn.MemoryConfig(layout, buffer, shard)

    def cores(self, ranges):
        """Converts a set of cores."""
        ttnn = self.ttnn
        return ttnn.CoreRangeSet(
            {ttnn.CoreRange(ttnn.CoreCoord(a, b), ttnn.CoreCoord(c, d)) for a, b, c, d in ranges}
        )

    def value(self, spec):
        """Converts an argument."""
        ttnn = self.ttnn
        if isinstance(spec, list):
            return [self.value(one) for one in spec]
        if not isinstance(spec, dict):
            return spec
        ((kind, data),) = spec.items()
        if kind == "tensor":
            return self.tensors[data]
        if kind == "dtype":
            return getattr(ttnn, DTYPES[data])
        if kind == "page":
            return ttnn.TILE_LAYOUT if data == "tile" else ttnn.ROW_MAJOR_LAYOUT
        if kind == "memory":
            return self.memory(data)
        if kind == "call":
            return self.called(*data)
        if kind == "array":
            return np.zeros(data[0], data[1])
        if kind == "device":
            return self.device
        if kind == "compute":
            data = {**data, "math_fidelity": getattr(ttnn.MathFidelity, data["math_fidelity"])}
            return ttnn.WormholeComputeKernelConfig(**data)
        if kind == "grid":
            return ttnn.CoreCoord(*data)
        if kind == "cores":
            return self.cores(data)
        if kind == "activation":
            op, params = data
            op = getattr(ttnn.UnaryOpType, op.upper())
            return ttnn.UnaryWithParam(op, *params)
        if kind == "pair":
            return tuple(data)
        if kind == "shard_layout":
            return getattr(ttnn.TensorMemoryLayout, data.upper())
        name, fields = data
        fields = {key: self.value(one) for key, one in fields.items()}
        return getattr(ttnn, name)(**fields)

    def create(self, spec, values=None):
        """Creates a tensor of a type, with the elements of a file if given."""
        ttnn = self.ttnn
        dtype, page = getattr(ttnn, DTYPES[spec["dtype"]]), self.value({"page": spec["page"]})
        if values is not None:
            return self.filled(np.load(values), dtype, page, spec)
        if spec["memory"] is None:
            return ttnn.zeros(spec["shape"], dtype=dtype, layout=page)
        memory = self.memory(spec["memory"])
        return ttnn.empty(spec["shape"], dtype, page, self.device, memory)

    def filled(self, array, dtype, page, spec):
        """Creates a tensor with the given elements."""
        ttnn = self.ttnn
        carrier = np.float32 if array.dtype.kind == "f" else np.int32
        if dtype == ttnn.uint32:
            carrier = np.uint32
        array = np.ascontiguousarray(array.astype(carrier).reshape(spec["shape"]))
        tensor = ttnn.Tensor(array)
        if dtype in (ttnn.bfloat8_b, ttnn.bfloat4_b):
            tensor = ttnn.to_dtype(tensor.to(ttnn.TILE_LAYOUT), dtype)
        elif tensor.dtype != dtype:
            tensor = ttnn.to_dtype(tensor, dtype)
        tensor = tensor if tensor.layout == page else tensor.to(page)
        if spec["memory"] is None:
            return tensor
        return tensor.to(self.device, self.memory(spec["memory"]))

    def elements(self, tensor):
        """Elements of a tensor in numpy, floats as 32 bits."""
        ttnn = self.ttnn
        tensor = tensor.cpu() if tensor.storage_type() == ttnn.StorageType.DEVICE else tensor
        if tensor.layout != ttnn.ROW_MAJOR_LAYOUT:
            tensor = ttnn.to_dtype(tensor, ttnn.float32) if self.is_block(tensor) else tensor
            tensor = tensor.to(ttnn.ROW_MAJOR_LAYOUT)
        if tensor.dtype == ttnn.bfloat16:
            tensor = ttnn.to_dtype(tensor, ttnn.float32)
        return tensor.to_numpy()

    def is_block(self, tensor):
        """Returns whether a tensor is of block floats."""
        return tensor.dtype in (self.ttnn.bfloat8_b, self.ttnn.bfloat4_b)

    def read(self, step):
        """Saves the values that a call produced or overwrote in the step's folder."""
        folder = Path(step["read"])
        for result in step["results"]:
            np.save(folder / f"{result['id']}.npy", self.elements(self.tensors[result["id"]]))
        for number in step["changed"]:
            path = folder / f"{number}-of-{step['index']}.npy"
            np.save(path, self.elements(self.tensors[number]))

    def described(self, tensor):
        """Layout of a tensor, in the form of the input types."""
        memory = None
        if tensor.storage_type() == self.ttnn.StorageType.DEVICE:
            memory = self.described_memory(tensor.memory_config())
        page = "tile" if tensor.layout == self.ttnn.TILE_LAYOUT else "row_major"
        dtype = self.names.get(tensor.dtype, str(tensor.dtype))
        return {"shape": list(tensor.shape), "dtype": dtype, "page": page, "memory": memory}

    def described_memory(self, config):
        """Memory config in that form."""
        found = {
            "layout": str(config.memory_layout).rpartition(".")[2].lower(),
            "buffer": str(config.buffer_type).rpartition(".")[2].lower(),
            "shards": None,
        }
        shards = config.shard_spec
        if shards is not None:
            ranges = sorted([r.start.x, r.start.y, r.end.x, r.end.y] for r in shards.grid.ranges())
            orientation = str(shards.orientation).rpartition(".")[2].lower()
            found["shards"] = {
                "shape": list(shards.shape), "ranges": ranges, "orientation": orientation,
            }  # fmt: skip
        return found

    def called(self, callee, arguments, keywords):
        """Returns the result of a function of the package."""
        function = self.ttnn
        for part in callee.split("."):
            function = getattr(function, part)
        arguments = [self.value(one) for one in arguments]
        keywords = {key: self.value(one) for key, one in keywords.items()}
        for name in _REMOVED:
            # The text is all that a function says of its parameters.
            if name not in (function.__doc__ or ""):
                keywords.pop(name, None)
        return function(*arguments, **keywords)

    def call(self, step):
        """Makes a call; returns the layouts of its results."""
        found = self.called(step["callee"], step["arguments"], step["keywords"])
        found = list(found) if isinstance(found, tuple | list) else [found]
        found = found[: len(step["results"])]
        for result, tensor in zip(step["results"], found, strict=False):
            self.tensors[result["id"]] = tensor
        if "read" in step:
            self.read(step)
        return [self.described(tensor) for tensor in found]

    def replace(self, index, step):
        """Creates the results of a skipped step.

        Those that cannot be created, or are known to end the process, are missing from then on.
        """
        for number, result in enumerate(step["results"]):
            if number in step.get("unmade", ()):
                self.tensors.pop(result["id"], None)
                continue
            print(json.dumps({"making": [index, number]}), flush=True)
            try:
                self.tensors[result["id"]] = self.create(result["type"], result.get("values"))
            except Exception:
                self.tensors.pop(result["id"], None)
            print(json.dumps({"making": None}), flush=True)

    def lacks(self, spec):
        """Returns whether a tensor of an argument is missing."""
        if isinstance(spec, list):
            return any(self.lacks(one) for one in spec)
        if isinstance(spec, dict):
            return any(
                data not in self.tensors if kind == "tensor" else self.lacks(data)
                for kind, data in spec.items()
            )
        return False

    def seconds(self, step, repeats):
        """Mean time of a call over consecutive repetitions on the device."""
        self.ttnn.synchronize_device(self.device)
        begin = time.perf_counter()
        for _ in range(repeats):
            self.call(step)
        self.ttnn.synchronize_device(self.device)
        return (time.perf_counter() - begin) / repeats

    def step(self, index, step):
        """Executes a step: a call, or creation or deallocation of tensors."""
        if step["callee"] is None:
            self.replace(index, step)
            return None
        if step["callee"] == "deallocate":
            self.ttnn.deallocate(self.tensors.pop(step["arguments"][0]["tensor"]))
            return None
        if step["callee"] == "take":
            for result, given in zip(step["results"], step["arguments"], strict=True):
                self.tensors[result["id"]] = self.tensors[given["tensor"]]
            return None
        return self.call(step)

    def answer(self, steps, repeats):
        """Makes the steps, and prints the answer to each."""
        for index, step in enumerate(steps):
            answer = {"index": index}
            if self.lacks(step["arguments"]) or self.lacks(step["keywords"]):
                # A result before it could not be made, which was said there.
                if step["callee"] not in ("deallocate", "take"):
                    answer["missing"] = True
                print(json.dumps(answer), flush=True)
                self.replace(index, step)
                continue
            try:
                answer["results"] = self.step(index, step)
                if repeats and step["callee"] not in (None, "deallocate", "take"):
                    answer["seconds"] = self.seconds(step, repeats)
            except Exception as error:
                answer["refused"] = message_of(error)
            print(json.dumps(answer), flush=True)
            if "refused" in answer:
                self.replace(index, step)

    def forget(self):
        """Frees what the steps left on the device."""
        self.tensors.clear()
        # Programs hold buffers of their own, and spare calls like theirs some of the checks.
        self.device.clear_program_cache()


def message_of(error):
    """Library's message without its source location."""
    lines = str(error).splitlines()
    said = [line.strip() for line in lines if line.strip()]
    for index, line in enumerate(said):
        if line == "info:" and index + 1 < len(said):
            return said[index + 1]
    return said[0] if said else type(error).__name__


def main():
    simulator = sys.argv[sys.argv.index("--simulator") + 1] if "--simulator" in sys.argv else None
    os.environ.update(mocked_device.environment(simulator))
    package = Path(importlib.util.find_spec("ttnn").submodule_search_locations[0])
    if simulator is not None and not mocked_device.has_compiler(package):
        sys.exit("the package has no device compiler in runtime/sfpi, which a simulator needs")
    mocked = "--card" not in sys.argv and simulator is None
    if mocked and mocked_device.has_compiler(package):
        sys.exit(
            "the package has a device compiler, for --simulator: a mocked device compiles nothing"
        )
    repeats = int(sys.argv[sys.argv.index("--repeat") + 1]) if "--repeat" in sys.argv else 0
    card = sys.argv[sys.argv.index("--mocked") + 1] if "--mocked" in sys.argv else "{}"
    card = mocked_device.Card(**json.loads(card))
    lock = mocked_device.prepare(package, card) if mocked else None
    if "--memory" in sys.argv:
        # What a simulated device holds is in this process: large tensors could take it all.
        limit = int(sys.argv[sys.argv.index("--memory") + 1])
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    import ttnn

    if mocked:
        mocked_device.switch(package, card)
    judge = Judge(ttnn, ttnn.open_device(device_id=0, l1_small_size=32768))
    if lock is not None:
        lock.close()
    for path in chain((sys.argv[-1],), map(str.strip, iter(sys.stdin.readline, ""))):
        judge.answer(json.loads(Path(path).read_text()), repeats)
        judge.forget()
        print(json.dumps({"done": True}), flush=True)
    ttnn.close_device(judge.device)


if __name__ == "__main__":
    main()
