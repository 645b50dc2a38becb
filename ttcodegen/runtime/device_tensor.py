"""Tensors that a loaded module left on the device, as handles for the next one."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ttcodegen.runtime.c_api import (
    DTYPES,
    LAYOUTS,
    MEMORIES,
    CTensor,
    Library,
    ModuleError,
    array_argument,
)


class DeviceTensor:
    """A tensor where a run left it. It keeps the device open, also when the modules are closed, and
    is freed with the last object that holds it."""

    def __init__(self, library: Library, handle: int) -> None:
        self._library = library
        self._handle: int | None = handle
        description = CTensor()
        library.checked("describe_tensor", handle, ctypes.byref(description))
        self.shape = tuple(int(description.shape[i]) for i in range(description.rank))
        self.dtype: np.dtype[Any] = DTYPES[int(description.dtype)]
        """In which `numpy` gives the elements."""
        self.data_type = str(description.data_type.decode())
        self.layout = LAYOUTS[int(description.layout)]
        self.buffer_type = MEMORIES[int(description.memory)]

    @property
    def handle(self) -> int:
        """What the C API knows the tensor by.

        Raises:
            ModuleError: if it was released.
        """
        if self._handle is None:
            raise ModuleError("the tensor was released")
        return self._handle

    def numpy(self) -> np.ndarray:
        """The elements, brought to the host.

        Raises:
            ModuleError: if the tensor was released or deallocated.
        """
        array = np.empty(self.shape, self.dtype)
        self._library.checked("to_host", self.handle, ctypes.byref(array_argument(array)))
        return array

    def release(self) -> None:
        """Frees the tensor, unless another handle shares its memory."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._library.call("release", handle)

    def __del__(self) -> None:
        if self.__dict__.get("_handle") is not None:
            self.release()

    def __repr__(self) -> str:
        shape = "x".join(str(size) for size in self.shape) or "scalar"
        return f"DeviceTensor({shape}, {self.data_type}, {self.layout}, {self.buffer_type})"
