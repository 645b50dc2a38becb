/// Global variables of a kernel: each processor has its own on the device, while processors that
/// run the same kernel here share one shared object.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

namespace ttcodegen::device {

/// The memory of a loaded kernel's variables, and their initial values.
struct KernelGlobals {
    std::byte* memory = nullptr;
    std::vector<std::byte> initial;  ///< Empty if the kernel has no such variables.

    /// @param object The shared object, loaded at `base`.
    static KernelGlobals find(const std::filesystem::path& object, std::byte* base);
};

}  // namespace ttcodegen::device
