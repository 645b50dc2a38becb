#include "device/kernel_globals.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

namespace ttcodegen::device {

namespace {

template <typename T>
T read_at(const std::vector<char>& file, std::size_t offset) {
    T value{};
    if (offset + sizeof(T) <= file.size()) {
        std::memcpy(&value, file.data() + offset, sizeof(T));
    }
    return value;
}

}  // namespace

KernelGlobals KernelGlobals::find([[maybe_unused]] const std::filesystem::path& object,
                                  [[maybe_unused]] std::byte* base) {
#ifdef TTCODEGEN_SANITIZE
    // The sanitizers surround variables with redzones that must not be touched.
    return {};
#else
    std::ifstream stream(object, std::ios::binary);
    const std::vector<char> file{std::istreambuf_iterator<char>(stream), {}};
    const auto header = read_at<Elf64_Ehdr>(file, 0);
    const auto section = [&](std::size_t index) {
        return read_at<Elf64_Shdr>(file, header.e_shoff + index * sizeof(Elf64_Shdr));
    };
    const Elf64_Shdr names = section(header.e_shstrndx);
    std::uint64_t begin = UINT64_MAX;
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < header.e_shnum; ++i) {
        const Elf64_Shdr found = section(i);
        const std::size_t at = names.sh_offset + found.sh_name;
        const std::string_view name = at < file.size() ? file.data() + at : "";
        // Kernels are linked without start files, so these sections hold only their variables.
        if ((name == ".data" || name == ".bss") && found.sh_size != 0) {
            begin = std::min(begin, found.sh_addr);
            end = std::max(end, found.sh_addr + found.sh_size);
        }
    }
    KernelGlobals globals;
    if (begin < end) {
        globals.memory = base + begin;
        globals.initial.assign(globals.memory, globals.memory + (end - begin));
    }
    return globals;
#endif
}

}  // namespace ttcodegen::device
