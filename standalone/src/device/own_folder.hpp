#pragma once

#include <filesystem>

namespace ttcodegen::device {

/// The folder of compiled kernels and their headers, beside what the ttcodegen command keeps.
///
/// What is in it is loaded into the process, so it has to be the user's own: nobody else owns it,
/// may write to it or may replace it. Where the folder that the environment names is not, one line
/// says so, and the process has a folder of its own that goes with it.
std::filesystem::path own_cache_folder();

/// Whether `path` is a regular file, no link, that the user owns and nobody else may write to.
bool is_own_file(const std::filesystem::path& path);

/// Takes other users' right to write to a file or folder, which the umask may give.
void close_to_others(const std::filesystem::path& path);

}  // namespace ttcodegen::device
