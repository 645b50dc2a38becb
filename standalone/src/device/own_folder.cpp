#include "device/own_folder.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tt_stl/assert.hpp"

namespace ttcodegen::device {

namespace fs = std::filesystem;

namespace {

/// The user id, inside of a user namespace, of users outside of it.
constexpr uid_t kNobody = 65534;
constexpr mode_t kOthers = S_IWGRP | S_IWOTH;

class Descriptor {
  public:
    explicit Descriptor(int value) : value_(value) {}
    ~Descriptor() {
        if (value_ >= 0) {
            close(value_);
        }
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    void replace(int value) {
        close(value_);
        value_ = value;
    }
    int get() const { return value_; }

  private:
    int value_;
};

std::string quoted(const fs::path& path) {
    // Appended, as GCC 12 warns of an overflow where a literal and a temporary string are added.
    std::string text("'");
    return text.append(path.string()).append("'");
}

std::string foreign(const struct stat& status) {
    if (status.st_uid != geteuid()) {
        return "it belongs to user " + std::to_string(status.st_uid);
    }
    return (status.st_mode & kOthers) != 0 ? "other users can write to it" : "";
}

/// The reason not to trust a parent folder: its owner and users who may write to it can replace its
/// content. In a sticky folder, such as /tmp, entries can be replaced by their owners only; a group
/// with the user's own number has no other members by convention.
std::string untrusted_parent(const struct stat& status, const fs::path& place) {
    if (status.st_uid != 0 && status.st_uid != geteuid() && status.st_uid != kNobody) {
        return quoted(place) + " belongs to user " + std::to_string(status.st_uid);
    }
    const mode_t writers = status.st_gid == geteuid() ? S_IWOTH : kOthers;
    const bool open = (status.st_mode & writers) != 0 && (status.st_mode & S_ISVTX) == 0;
    return open ? std::string("other users can write to ").append(quoted(place)) : "";
}

/// The reason not to use a folder, empty if there is none. It is opened step by step from the root,
/// so that the checked folder is the opened one; missing folders are created.
std::string untrusted_reason(const fs::path& folder) {
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    std::error_code error;
    // Links above it are resolved first; their targets are checked.
    const fs::path path =
        fs::weakly_canonical(fs::absolute(folder).parent_path(), error) / folder.filename();
    Descriptor current(open("/", kFlags));
    fs::path place = "/";
    struct stat status{};
    for (const fs::path& name : path.relative_path()) {
        if (fstat(current.get(), &status) != 0) {
            return "it cannot be opened";
        }
        if (const std::string reason = untrusted_parent(status, place); !reason.empty()) {
            return reason;
        }
        place /= name;
        int next = openat(current.get(), name.c_str(), kFlags);
        if (next < 0 && errno == ENOENT &&
            (mkdirat(current.get(), name.c_str(), 0700) == 0 || errno == EEXIST)) {
            next = openat(current.get(), name.c_str(), kFlags);
        }
        if (next < 0) {
            const bool is_link =
                fstatat(current.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                S_ISLNK(status.st_mode);
            return is_link ? "it is a link" : quoted(place) + " cannot be opened";
        }
        current.replace(next);
    }
    return fstat(current.get(), &status) == 0 ? foreign(status) : "it cannot be opened";
}

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

/// The home folder in the user database, empty if there is none.
fs::path home_of_user() {
    std::vector<char> text(1 << 14);
    passwd entry{};
    passwd* found = nullptr;
    const int failed = getpwuid_r(geteuid(), &entry, text.data(), text.size(), &found);
    return failed == 0 && found != nullptr ? fs::path(entry.pw_dir) : fs::path();
}

/// The configured folder; empty if the environment names none and the user has no home.
fs::path wanted_folder() {
    for (const char* variable : {"TTCODEGEN_CACHE", "XDG_CACHE_HOME"}) {
        if (const std::string folder = environment(variable); !folder.empty()) {
            return fs::path(folder) / "ttcodegen";
        }
    }
    const std::string home = environment("HOME");
    const fs::path folder = home.empty() ? home_of_user() : fs::path(home);
    return folder.empty() ? folder : folder / ".cache" / "ttcodegen";
}

/// A temporary folder of this process, removed at its end.
class PrivateFolder {
  public:
    PrivateFolder() {
        std::string name = (fs::temp_directory_path() / "ttcodegen-kernels-XXXXXX").string();
        TT_FATAL(mkdtemp(name.data()) != nullptr, "Cannot make a folder in '{}'",
                 fs::temp_directory_path().string());
        path_ = name;
    }
    ~PrivateFolder() {
        std::error_code ignored;
        if (getpid() == owner_) {
            fs::remove_all(path_, ignored);
        }
    }
    PrivateFolder(const PrivateFolder&) = delete;
    PrivateFolder& operator=(const PrivateFolder&) = delete;
    const fs::path& path() const { return path_; }

  private:
    fs::path path_;
    pid_t owner_ = getpid();
};

const fs::path& private_folder() {
    static const PrivateFolder folder;
    return folder.path();
}

}  // namespace

fs::path own_cache_folder() {
    static std::mutex mutex;
    static std::map<fs::path, fs::path> known;
    const fs::path wanted = wanted_folder();
    const std::lock_guard lock(mutex);
    const auto found = known.find(wanted);
    if (found != known.end()) {
        return found->second;
    }
    const std::string reason = wanted.empty() ? "" : untrusted_reason(wanted);
    if (!reason.empty()) {
        std::fprintf(stderr, "ttcodegen: the cache folder '%s' is not used: %s\n", wanted.c_str(),
                     reason.c_str());
    }
    const bool is_trusted = !wanted.empty() && reason.empty();
    return known[wanted] = is_trusted ? wanted : private_folder();
}

bool is_own_file(const fs::path& path) {
    struct stat status{};
    const Descriptor file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    return file.get() >= 0 && fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
           foreign(status).empty();
}

void close_to_others(const fs::path& path) {
    std::error_code ignored;
    fs::permissions(path, fs::perms::group_write | fs::perms::others_write,
                    fs::perm_options::remove, ignored);
}

}  // namespace ttcodegen::device
