/// Compiles device kernels natively at run time, once for each content, into a cache on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/kernel_globals.hpp"
#include "ttcodegen/device/processor.hpp"

namespace ttcodegen::device {

/// A kernel's source: a file or a text.
struct KernelSource {
    std::string name;            ///< As the program gave it; what messages show.
    std::filesystem::path path;  ///< Empty for text.
    std::string text;            ///< Content of the file, or the text.

    /// Searches for a file as tt-metal does: absolute, relative to the working directory, to
    /// TT_METAL_KERNEL_PATH, to the system's kernels, to TT_METAL_RUNTIME_ROOT or TT_METAL_HOME.
    /// @throws std::runtime_error if it is not found.
    static KernelSource from_file(const std::string& name);
    static KernelSource from_text(std::string text);
};

/// The input of a kernel's compilation; equal requests give the same shared object.
struct KernelRequest {
    const KernelSource* source = nullptr;
    ProcessorKind processor = ProcessorKind::DataMovement0;
    std::uint8_t noc = 0;
    const char* architecture = "";
    std::uint32_t num_dram_banks = 0;
    std::uint32_t num_l1_banks = 0;
    std::vector<std::uint32_t> compile_args;
    std::map<std::string, std::uint32_t> named_compile_args;
    std::map<std::string, std::string> defines;
    /// Format, tile size and tile geometry of each circular buffer as constants for kernels: the
    /// content of the header chlkc_descriptors.h.
    std::string descriptors;
};

/// A kernel that is loaded for the lifetime of the process.
struct LoadedKernel {
    void (*entry)() = nullptr;
    KernelGlobals globals;
};

/// The kernels, in the order of the requests; those that are not cached are compiled in parallel on
/// all threads.
/// @throws std::runtime_error with the compiler's message if one does not compile.
std::vector<const LoadedKernel*> compile_kernels(const std::vector<KernelRequest>& requests);

}  // namespace ttcodegen::device
