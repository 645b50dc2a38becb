#include "support/data_directory.hpp"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <memory>
#include <utility>

namespace support {

namespace {

thread_local std::string chosen_directory;

bool is_directory(const std::string& path) {
    struct stat status{};
    return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// The folder of the executable or shared object that holds this code; empty if nobody knows.
std::string own_directory() {
    Dl_info info{};
    const char* path = nullptr;
    if (dladdr(reinterpret_cast<const void*>(&own_directory), &info) != 0) {
        path = info.dli_fname;
    }
    // An executable that was found on PATH is known to the loader without its folder.
    if (path == nullptr || std::string(path).find('/') == std::string::npos) {
        path = "/proc/self/exe";
    }
    const std::unique_ptr<char, decltype(&free)> real(realpath(path, nullptr), free);
    if (real == nullptr) {
        return "";
    }
    const std::string text(real.get());
    return text.substr(0, text.rfind('/'));
}

}  // namespace

std::string installed_directory(const char* variable, const std::string& name) {
    if (const char* chosen = getenv(variable); chosen != nullptr && *chosen != '\0') {
        return chosen;
    }
    const std::string own = own_directory();
    for (const char* relative : {"/", "/../"}) {
        if (!own.empty() && is_directory(own + relative + name)) {
            return own + relative + name;
        }
    }
    return "";
}

std::string data_directory() {
    return chosen_directory.empty() ? installed_directory("TTCODEGEN_DATA", "data")
                                    : chosen_directory;
}

DataDirectory::DataDirectory(std::string path)
    : previous_(std::exchange(chosen_directory, std::move(path))) {}

DataDirectory::~DataDirectory() { chosen_directory = std::move(previous_); }

}  // namespace support
