#include "device/kernel_compiler.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>

#include "device/device_headers.hpp"
#include "device/own_folder.hpp"
#include "device/sanitizer.hpp"
#include "tt_stl/assert.hpp"

extern char** environ;

namespace ttcodegen::device {

namespace fs = std::filesystem;

namespace {

/// Limits of the cache: kernels are about ten kilobytes each, headers half a megabyte.
constexpr std::size_t kKeptKernels = 4000;
constexpr std::size_t kKeptHeaders = 4;
const std::string kHeadersPrefix = "device-headers-";

/// 128 bits of FNV-1a, as two hashes with different seeds: names of files in the cache.
class ContentHash {
  public:
    void add(std::string_view text) {
        for (const char c : text) {
            mix(static_cast<unsigned char>(c));
        }
        mix(0xff);  // so that ("ab", "c") differs from ("a", "bc")
    }
    std::string hex() const {
        std::string text;
        for (std::uint64_t half : state_) {
            for (int shift = 60; shift >= 0; shift -= 4) {
                text += "0123456789abcdef"[half >> shift & 15];
            }
        }
        return text;
    }

  private:
    void mix(std::uint64_t byte) {
        for (std::uint64_t& half : state_) {
            half = (half ^ byte) * 0x100000001b3;
        }
    }
    std::uint64_t state_[2] = {0xcbf29ce484222325, 0x9e3779b97f4a7c15};
};

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

std::string compiler() {
    const std::string wanted = environment("TTCODEGEN_KERNEL_CXX");
    if (!wanted.empty()) {
        return wanted;
    }
    std::error_code ignored;
    return fs::exists(TTCODEGEN_KERNEL_CXX, ignored) ? TTCODEGEN_KERNEL_CXX : "c++";
}

void write_file(const fs::path& path, std::string_view text) {
    std::ofstream file(path, std::ios::binary);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.close();
    TT_FATAL(file.good(),
             "Cannot write '{}'; the environment variable TTCODEGEN_CACHE names another folder for "
             "compiled kernels",
             path.string());
}

std::string read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    TT_FATAL(file.good(), "Cannot read '{}'", path.string());
    return text.str();
}

/// A name next to `path` that is unique to this process.
fs::path scratch_name(const fs::path& path) {
    static std::atomic<unsigned> count = 0;
    return path.string() + "." + std::to_string(getpid()) + "." + std::to_string(count++);
}

int run_compiler(const std::vector<std::string>& command, const fs::path& log) {
    std::vector<char*> arguments;
    for (const std::string& argument : command) {
        arguments.push_back(const_cast<char*>(argument.c_str()));
    }
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0666);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    pid_t child = 0;
    const int failed =
        posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    TT_FATAL(failed == 0,
             "The compiler '{}' cannot be started; the environment variable TTCODEGEN_KERNEL_CXX "
             "names another one",
             command[0]);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/// Returns whether the compiler is Clang. One that cannot be started is assumed to be GCC: cached
/// kernels need no compiler.
bool compiler_is_clang() {
    const fs::path log = scratch_name(own_cache_folder() / "compiler");
    std::error_code error;
    try {
        fs::create_directories(log.parent_path(), error);
        run_compiler({compiler(), "--version"}, log);
        const std::string version = read_file(log);
        fs::remove(log, error);
        return version.find("clang") != std::string::npos;
    } catch (const std::exception&) {
        return false;
    }
}

/// Flags that instrument each store; see ttcodegen/device/kernel_stores.hpp. The functions there
/// take precedence over functions of the same names in the process.
std::vector<std::string> store_check_flags() {
    std::vector<std::string> flags{"-DTTCODEGEN_CHECK_STORES", "-fsanitize=kernel-address",
                                   "-Wl,-Bsymbolic-functions"};
    const bool is_clang = compiler_is_clang();
    for (const std::string parameter :
         {"asan-instrumentation-with-call-threshold=0", "asan-instrument-reads=0", "asan-stack=0",
          "asan-globals=0"}) {
        flags.emplace_back(is_clang ? "-mllvm" : "--param");
        flags.push_back(is_clang ? "-" + parameter : parameter);
    }
    return flags;
}

const std::vector<std::string>& compiler_flags() {
    // Kernels are written for 32-bit RISC-V: they use addresses as integers and pun types through
    // pointers. Warnings would concern only that.
    static const std::vector<std::string> flags = [] {
        std::vector<std::string> all{"-std=c++20",
                                     "-O2",
                                     "-w",
                                     "-shared",
                                     "-fPIC",
                                     "-nostartfiles",
                                     "-fno-exceptions",
                                     "-fasynchronous-unwind-tables",
                                     "-fno-strict-aliasing",
                                     "-fwrapv",
                                     "-fstack-clash-protection",
                                     "-fvisibility=hidden"};
        std::istringstream more(TTCODEGEN_KERNEL_FLAGS);
        for (std::string flag; more >> flag;) {
            all.push_back(flag);
        }
        if (!kAddressSanitizer) {
            const std::vector<std::string> checks = store_check_flags();
            all.insert(all.end(), checks.begin(), checks.end());
        }
        return all;
    }();
    return flags;
}

const std::string& headers_hash() {
    static const std::string hash = [] {
        ContentHash content;
        for (const DeviceHeader* header = kDeviceHeaders; header->path != nullptr; ++header) {
            content.add(header->path);
            content.add(header->text);
        }
        return content.hex();
    }();
    return hash;
}

/// Returns whether a folder has all headers, complete and owned by the user.
bool has_headers(const fs::path& folder) {
    std::error_code error;
    for (const DeviceHeader* header = kDeviceHeaders; header->path != nullptr; ++header) {
        const fs::path path = folder / header->path;
        if (fs::file_size(path, error) != std::string_view(header->text).size() || error ||
            !is_own_file(path)) {
            return false;
        }
    }
    return true;
}

/// The folder with the headers of the kernel API, written if it is missing or damaged.
fs::path headers_folder() {
    const fs::path wanted = own_cache_folder() / (kHeadersPrefix + headers_hash());
    std::error_code error;
    // Marks the folder in use as the most recent one.
    fs::last_write_time(wanted, fs::file_time_type::clock::now(), error);
    if (!error && has_headers(wanted)) {
        return wanted;
    }
    fs::remove_all(wanted, error);
    const fs::path scratch = scratch_name(own_cache_folder() / "headers");
    for (const DeviceHeader* header = kDeviceHeaders; header->path != nullptr; ++header) {
        const fs::path path = scratch / header->path;
        fs::create_directories(path.parent_path(), error);
        write_file(path, header->text);
        close_to_others(path);
    }
    fs::rename(scratch, wanted, error);
    if (error) {
        fs::remove_all(scratch);  // another process was faster
    }
    return wanted;
}

/// The precompiled header of a kernel's translation unit.
const char* precompiled_header(const KernelSource& source) {
    return source.text.find("#include <algorithm>") != std::string::npos
               ? "ttcodegen/device/precompiled_algorithm.hpp"
               : "ttcodegen/device/precompiled.hpp";
}

/// Precompiles a header with the flags of kernels, where GCC searches for it. Kernels compile
/// without it too, only slower, so a failure is not reported. Clang supports it only for
/// `-include`, and refuses a kernel whose flags differ.
void precompile(const fs::path& header) {
    static const bool is_clang = compiler_is_clang();
    ContentHash flags;
    flags.add(compiler());
    for (const std::string& flag : compiler_flags()) {
        flags.add(flag);
    }
    const fs::path folder = header.string() + ".gch";
    const fs::path wanted = folder / flags.hex();
    std::error_code error;
    if (is_clang || is_own_file(wanted)) {
        return;
    }
    fs::create_directories(folder, error);
    const fs::path scratch = scratch_name(header);
    const fs::path log = scratch.string() + ".log";
    std::vector<std::string> command{compiler()};
    for (const std::string& flag : compiler_flags()) {
        if (flag != "-shared" && !flag.starts_with("-Wl,")) {
            command.push_back(flag);
        }
    }
    command.insert(command.end(), {"-x", "c++-header", header.string(), "-o", scratch.string()});
    const int status = run_compiler(command, log);
    fs::remove(log, error);
    if (status == 0) {
        close_to_others(scratch);
        fs::rename(scratch, wanted, error);
    }
    fs::remove(scratch, error);
}

/// Hashes the files that a kernel includes from its own folder: they are part of its content.
void add_local_includes(ContentHash& hash, const fs::path& folder, const std::string& text,
                        std::set<fs::path>& seen) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t directive = line.find("#include \"");
        if (directive == std::string::npos) {
            continue;
        }
        const std::size_t begin = directive + 10;
        const std::size_t end = line.find('"', begin);
        const fs::path path = folder / line.substr(begin, end - begin);
        std::error_code error;
        if (end == std::string::npos || !fs::is_regular_file(path, error) ||
            !seen.insert(path).second) {
            continue;
        }
        const std::string included = read_file(path);
        hash.add(path.string());
        hash.add(included);
        add_local_includes(hash, path.parent_path(), included, seen);
    }
}

std::string define(std::string_view name, std::string_view value) {
    return "#define " + std::string(name) + " " + std::string(value) + "\n";
}

std::string processor_defines(const KernelRequest& request) {
    std::string text;
    text += define("KERNEL_BUILD", "1");
    text += define(
        std::string_view(request.architecture) == "blackhole" ? "ARCH_BLACKHOLE" : "ARCH_WORMHOLE",
        "1");
    text += define("NUM_DRAM_BANKS", std::to_string(request.num_dram_banks));
    text += define("NUM_L1_BANKS", std::to_string(request.num_l1_banks));
    text += define("NOC_INDEX", std::to_string(request.noc));
    text += define("NOC_MODE", "0");
    switch (request.processor) {
        case ProcessorKind::DataMovement0:
            return text + define("COMPILE_FOR_BRISC", "1") + define("PROCESSOR_INDEX", "0");
        case ProcessorKind::DataMovement1:
            return text + define("COMPILE_FOR_NCRISC", "1") + define("PROCESSOR_INDEX", "1");
        default:
            for (const char* name :
                 {"COMPILE_FOR_TRISC", "UCK_CHLKC_UNPACK", "UCK_CHLKC_MATH", "UCK_CHLKC_PACK",
                  "TRISC_UNPACK", "TRISC_MATH", "TRISC_PACK"}) {
                text += define(name, "1");
            }
            return text;
    }
}

/// The translation unit: definitions, prologue, the kernel, the entry point.
std::string unit_text(const KernelRequest& request) {
    const KernelSource& source = *request.source;
    // First of all: GCC uses a precompiled header only at the begin of a translation unit.
    std::string text = "#include \"" + std::string(precompiled_header(source)) + "\"\n";
    text += processor_defines(request);
    std::string arguments;
    for (const std::uint32_t value : request.compile_args) {
        arguments += (arguments.empty() ? "" : ", ") + std::to_string(value) + "u";
    }
    text += define("KERNEL_COMPILE_TIME_ARGS", arguments);
    std::string named;
    for (const auto& [name, value] : request.named_compile_args) {
        named += (named.empty() ? "{\"" : ", {\"") + name + "\", " + std::to_string(value) + "u}";
    }
    if (!named.empty()) {
        text += define("KERNEL_COMPILE_TIME_ARG_MAP", named);
    }
    for (const auto& [name, value] : request.defines) {
        text += define(name, value);
    }
    text += "#include \"ttcodegen/device/kernel_prologue.hpp\"\n" + request.descriptors;
    if (source.path.empty()) {
        text += "#line 1 \"" + source.name + "\"\n" + source.text + "\n";
    } else {
        text += "#include \"" + source.path.string() + "\"\n";
    }
    text += "#line 1 \"ttcodegen entry point\"\n";
    return text + "#include \"ttcodegen/device/kernel_entry.hpp\"\n";
}

/// Keeps the most recent entries of a folder whose names begin with `prefix`; users of older ones
/// have loaded them already, or recreate them.
void prune(const fs::path& folder, std::string_view prefix, std::size_t kept) {
    std::vector<std::pair<fs::file_time_type, fs::path>> entries;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        if (entry.path().filename().string().starts_with(prefix)) {
            entries.emplace_back(entry.last_write_time(error), entry.path());
        }
    }
    if (entries.size() <= kept) {
        return;
    }
    std::sort(entries.begin(), entries.end());
    for (std::size_t i = 0; i + kept < entries.size(); ++i) {
        fs::remove_all(entries[i].second, error);
    }
}

void compile(const KernelRequest& request, const std::string& unit, const fs::path& object) {
    std::error_code error;
    fs::create_directories(object.parent_path(), error);
    const fs::path scratch = scratch_name(object);
    const fs::path source = scratch.string() + ".cpp";
    const fs::path log = scratch.string() + ".log";
    write_file(source, unit);
    std::vector<std::string> command{compiler()};
    command.insert(command.end(), compiler_flags().begin(), compiler_flags().end());
    command.insert(command.end(),
                   {"-I", headers_folder().string(), source.string(), "-o", scratch.string()});
    // Linking the C++ library takes as long as parsing, and few kernels need it.
    std::vector<std::string> narrow = command;
    narrow.insert(narrow.end(), {"-nodefaultlibs", "-lc", "-lm", "-lgcc", "-Wl,-z,defs"});
    int status = run_compiler(kAddressSanitizer ? command : narrow, log);
    std::string messages = read_file(log);
    if (status != 0 && messages.find("undefined reference") != std::string::npos) {
        status = run_compiler(command, log);
        messages = read_file(log);
    }
    fs::remove(log, error);
    if (status != 0) {
        fs::remove(source, error);
        fs::remove(scratch, error);
        TT_THROW("Kernel {} does not compile:\n{}", request.source->name, messages);
    }
    fs::remove(source, error);
    close_to_others(scratch);
    fs::rename(scratch, object);
}

/// Returns whether a shared object is complete. One that was truncated by a full disk or a crash is
/// recompiled; loading it would end the process.
bool is_whole(const fs::path& object) {
    std::ifstream file(object, std::ios::binary);
    Elf64_Ehdr header{};
    std::error_code error;
    const std::uintmax_t size = fs::file_size(object, error);
    return file.read(reinterpret_cast<char*>(&header), sizeof header) && !error &&
           std::equal(std::begin(header.e_ident), std::begin(header.e_ident) + SELFMAG, ELFMAG) &&
           header.e_shoff > 0 &&
           header.e_shoff + std::uintmax_t{header.e_shnum} * header.e_shentsize <= size;
}

std::unique_ptr<LoadedKernel> load(const fs::path& object, const KernelRequest& request) {
    void* library = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
    TT_FATAL(library != nullptr, "The compiled kernel {} cannot be loaded: {}",
             request.source->name, dlerror());
    void* entry = dlsym(library, "ttcodegen_kernel");
    Dl_info place{};
    TT_FATAL(entry != nullptr && dladdr(entry, &place) != 0,
             "The compiled kernel {} has no entry point: {}", request.source->name,
             object.string());
    auto kernel = std::make_unique<LoadedKernel>();
    kernel->entry = reinterpret_cast<void (*)()>(entry);
    kernel->globals = KernelGlobals::find(object, static_cast<std::byte*>(place.dli_fbase));
    return kernel;
}

std::string content_hash(const KernelRequest& request, const std::string& unit) {
    ContentHash hash;
    hash.add(headers_hash());
    hash.add(compiler());
    for (const std::string& flag : compiler_flags()) {
        hash.add(flag);
    }
    hash.add(unit);
    hash.add(request.source->text);
    std::set<fs::path> seen;
    add_local_includes(hash, request.source->path.parent_path(), request.source->text, seen);
    return hash.hex();
}

/// Kernels of this process, by content.
std::mutex loaded_mutex;
std::map<std::string, std::unique_ptr<LoadedKernel>> loaded;

}  // namespace

KernelSource KernelSource::from_file(const std::string& name) {
    const fs::path given(name);
    std::vector<fs::path> candidates{given};
    if (given.is_relative()) {
        candidates[0] = fs::current_path() / given;
        for (const char* variable :
             {"TT_METAL_KERNEL_PATH", "TT_METAL_RUNTIME_ROOT", "TT_METAL_HOME"}) {
            if (const std::string folder = environment(variable); !folder.empty()) {
                candidates.push_back(fs::absolute(fs::path(folder) / given));
            }
        }
        const auto system =
            candidates.begin() +
            std::min<std::ptrdiff_t>(2, static_cast<std::ptrdiff_t>(candidates.size()));
        candidates.insert(system, fs::path("/usr/share/tenstorrent/kernels") / given);
    }
    for (const fs::path& candidate : candidates) {
        std::error_code error;
        if (fs::is_regular_file(candidate, error)) {
            return {name, candidate, read_file(candidate)};
        }
    }
    std::string searched;
    for (const fs::path& candidate : candidates) {
        searched += "\n  " + candidate.string();
    }
    TT_THROW("Kernel file {} doesn't exist in any of the searched paths!{}", name, searched);
}

KernelSource KernelSource::from_text(std::string text) {
    return {"Kernel_Source_Code", {}, std::move(text)};
}

std::vector<const LoadedKernel*> compile_kernels(const std::vector<KernelRequest>& requests) {
    std::vector<std::string> hashes;
    std::vector<std::size_t> missing;
    std::vector<std::string> units;
    const std::lock_guard lock(loaded_mutex);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        units.push_back(unit_text(requests[i]));
        hashes.push_back(content_hash(requests[i], units.back()));
        const bool known = loaded.contains(hashes[i]) || std::find(hashes.begin(), hashes.end() - 1,
                                                                   hashes[i]) != hashes.end() - 1;
        if (!known) {
            missing.push_back(i);
        }
    }
    const fs::path folder = own_cache_folder() / "kernels";
    const auto object = [&](std::size_t i) { return folder / (hashes[i] + ".so"); };
    std::atomic<std::size_t> next = 0;
    std::vector<std::exception_ptr> errors(missing.size());
    const auto work = [&] {
        for (std::size_t i = next++; i < missing.size(); i = next++) {
            try {
                if (!is_own_file(object(missing[i])) || !is_whole(object(missing[i]))) {
                    compile(requests[missing[i]], units[missing[i]], object(missing[i]));
                }
            } catch (...) {
                errors[i] = std::current_exception();
            }
        }
    };
    if (!missing.empty()) {
        const fs::path headers = headers_folder();
        for (const std::size_t i : missing) {
            if (!is_own_file(object(i))) {
                precompile(headers / precompiled_header(*requests[i].source));
            }
        }
    }
    const std::size_t threads =
        std::min<std::size_t>(missing.size(), std::max(1U, std::thread::hardware_concurrency()));
    std::vector<std::thread> helpers;
    for (std::size_t i = 1; i < threads; ++i) {
        helpers.emplace_back(work);
    }
    work();
    for (std::thread& helper : helpers) {
        helper.join();
    }
    for (const std::exception_ptr& error : errors) {
        if (error) {
            std::rethrow_exception(error);
        }
    }
    for (const std::size_t i : missing) {
        loaded[hashes[i]] = load(object(i), requests[i]);
    }
    if (!missing.empty()) {
        prune(folder, "", kKeptKernels);
        prune(own_cache_folder(), kHeadersPrefix, kKeptHeaders);
    }
    std::vector<const LoadedKernel*> kernels;
    for (const std::string& hash : hashes) {
        kernels.push_back(loaded.at(hash).get());
    }
    return kernels;
}

}  // namespace ttcodegen::device
