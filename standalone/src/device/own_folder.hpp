#pragma once

#include <filesystem>

namespace ttcodegen::device {

/// The folder of compiled kernels and their headers, beside the cache of the ttcodegen command.
///
/// Its content is loaded into the process, so it must be the user's own: no one else may own it,
/// write to it or replace it. If the configured folder is not, a warning is printed, and the
/// process uses a temporary folder of its own.
std::filesystem::path own_cache_folder();

/// Returns whether `path` is a regular file, no link, owned and writable by the user only.
bool is_own_file(const std::filesystem::path& path);

/// Removes other users' permission to write to a file or folder, which the umask may grant.
void close_to_others(const std::filesystem::path& path);

}  // namespace ttcodegen::device
