#include "support/files.hpp"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace support {

namespace {

static_assert(std::endian::native == std::endian::little, "npy files are written little-endian");

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t max_header_bytes = 1 << 20;
constexpr std::uint64_t elements_of_a_piece = 1 << 16;

struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
    throw std::runtime_error(path + ": " + reason);
}

File open(const std::string& path, const char* mode) {
    File file(std::fopen(path.c_str(), mode));
    if (file == nullptr) {
        fail(path, std::strerror(errno));
    }
    return file;
}

constexpr struct {
    std::string_view text;
    ElementType type;
} type_codes[] = {
    {"b1", ElementType::boolean},  {"i1", ElementType::int8},    {"i2", ElementType::int16},
    {"i4", ElementType::int32},    {"i8", ElementType::int64},   {"u1", ElementType::uint8},
    {"u2", ElementType::uint16},   {"u4", ElementType::uint32},  {"u8", ElementType::uint64},
    {"f2", ElementType::float16},  {"f4", ElementType::float32}, {"f8", ElementType::float64},
    {"V2", ElementType::bfloat16},
};

/// The fields of a .npy header.
struct Header {
    ElementType type = ElementType::float32;
    bool big_endian = false;
    bool fortran_order = false;
    std::vector<std::uint64_t> shape;
};

/// Parses the Python dictionary of a header: quoted keys; a string, a boolean or a tuple as value.
class HeaderReader {
  public:
    HeaderReader(const std::string& path, std::string_view text) : path_(path), text_(text) {}

    Header read() {
        Header header;
        bool has_type = false;
        bool has_order = false;
        bool has_shape = false;
        expect('{');
        while (!accept('}')) {
            const std::string_view key = quoted();
            expect(':');
            if (key == "descr") {
                has_type = true;
                read_type(header);
            } else if (key == "fortran_order") {
                has_order = true;
                header.fortran_order = boolean();
            } else if (key == "shape") {
                has_shape = true;
                header.shape = tuple();
            } else {
                malformed();
            }
            if (!accept(',')) {
                expect('}');
                break;
            }
        }
        if (!has_type || !has_order || !has_shape) {
            malformed();
        }
        return header;
    }

  private:
    [[noreturn]] void malformed() const { fail(path_, "the header of the .npy file is malformed"); }

    void skip_spaces() {
        const std::size_t end = text_.find_first_not_of(" \t\n");
        text_.remove_prefix(end == std::string_view::npos ? text_.size() : end);
    }

    bool accept(char character) {
        skip_spaces();
        if (text_.empty() || text_[0] != character) {
            return false;
        }
        text_.remove_prefix(1);
        return true;
    }

    void expect(char character) {
        if (!accept(character)) {
            malformed();
        }
    }

    std::string_view quoted() {
        skip_spaces();
        if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) {
            malformed();
        }
        const std::size_t end = text_.find(text_[0], 1);
        if (end == std::string_view::npos) {
            malformed();
        }
        const std::string_view inside = text_.substr(1, end - 1);
        text_.remove_prefix(end + 1);
        return inside;
    }

    bool boolean() {
        skip_spaces();
        for (const std::string_view word : {"True", "False"}) {
            if (text_.starts_with(word)) {
                text_.remove_prefix(word.size());
                return word == "True";
            }
        }
        malformed();
    }

    std::vector<std::uint64_t> tuple() {
        std::vector<std::uint64_t> sizes;
        expect('(');
        while (!accept(')')) {
            skip_spaces();
            std::uint64_t size = 0;
            const auto [end, error] =
                std::from_chars(text_.data(), text_.data() + text_.size(), size);
            if (error != std::errc()) {
                malformed();
            }
            text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
            accept('L');
            sizes.push_back(size);
            if (!accept(',')) {
                expect(')');
                break;
            }
        }
        return sizes;
    }

    void read_type(Header& header) {
        skip_spaces();
        if (text_.starts_with('[')) {
            fail(path_, "the array has named fields; plain elements are needed");
        }
        std::string_view code = quoted();
        const std::string whole(code);
        if (!code.empty() && std::string_view("<>=|").find(code[0]) != std::string_view::npos) {
            header.big_endian = code[0] == '>';
            code.remove_prefix(1);
        }
        const auto* const known = std::find_if(std::begin(type_codes), std::end(type_codes),
                                               [&](const auto& row) { return row.text == code; });
        if (known == std::end(type_codes)) {
            fail(path_, "the array has elements of type '" + whole +
                            "'; booleans, integers and floats up to 64 bits can be read");
        }
        header.type = known->type;
    }

    const std::string& path_;
    std::string_view text_;
};

void swap_bytes(std::vector<std::byte>& bytes, std::size_t size) {
    for (std::size_t i = 0; i + size <= bytes.size(); i += size) {
        std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                     bytes.begin() + static_cast<std::ptrdiff_t>(i + size));
    }
}

/// Converts elements from column-major to row-major order.
std::vector<std::byte> row_major(const std::vector<std::byte>& bytes,
                                 std::span<const std::uint64_t> shape, std::size_t size) {
    std::vector<std::byte> result(bytes.size());
    std::vector<std::uint64_t> strides(shape.size(), size);
    for (std::size_t i = 1; i < shape.size(); ++i) {
        strides[i] = strides[i - 1] * shape[i - 1];
    }
    std::vector<std::uint64_t> index(shape.size(), 0);
    std::uint64_t source = 0;
    for (std::uint64_t target = 0; target < result.size(); target += size) {
        std::memcpy(result.data() + target, bytes.data() + source, size);
        for (std::size_t i = shape.size(); i-- > 0;) {
            source += strides[i];
            if (++index[i] < shape[i]) {
                break;
            }
            source -= strides[i] * shape[i];
            index[i] = 0;
        }
    }
    return result;
}

/// Reads the header and leaves `file` at the first element.
Header read_header(const std::string& path, std::FILE* file) {
    unsigned char start[12] = {};
    if (std::fread(start, 1, 8, file) != 8 || std::memcmp(start, magic.data(), magic.size()) != 0) {
        fail(path, "not a .npy file");
    }
    const unsigned version = start[6];
    if (version < 1 || version > 3) {
        fail(path, "version " + std::to_string(version) + " of the .npy format is not known");
    }
    const std::size_t length_bytes = version == 1 ? 2 : 4;
    if (std::fread(start + 8, 1, length_bytes, file) != length_bytes) {
        fail(path, "the file is truncated");
    }
    std::size_t length = 0;
    for (std::size_t i = length_bytes; i-- > 0;) {
        length = length << 8 | start[8 + i];
    }
    if (length > max_header_bytes) {
        fail(path, "the header of the .npy file is malformed");
    }
    std::string text(length, '\0');
    if (std::fread(text.data(), 1, length, file) != length) {
        fail(path, "the file is truncated");
    }
    return HeaderReader(path, text).read();
}

/// The number of bytes from the current position to the end.
std::uint64_t remaining_bytes(const std::string& path, std::FILE* file) {
    struct stat status{};
    const long position = std::ftell(file);
    if (position < 0 || fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode)) {
        fail(path, "not a regular file");
    }
    return static_cast<std::uint64_t>(std::max<long>(0, status.st_size - position));
}

/// Maps the bytes from the current position to the end; null if the file cannot be mapped or
/// elements of `size` bytes would not be aligned.
std::shared_ptr<const std::byte> map_rest(std::FILE* file, std::uint64_t bytes, std::size_t size) {
    const long position = std::ftell(file);
    if (bytes == 0 || position < 0 || position % static_cast<long>(size) != 0) {
        return nullptr;
    }
    const auto offset = static_cast<std::size_t>(position);
    const std::size_t length = offset + bytes;
    // Writes, which tensors on the mapping may make, are private to this process.
    void* memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
    if (memory == MAP_FAILED) {
        return nullptr;
    }
    return {static_cast<const std::byte*>(memory) + offset,
            [memory, length](const std::byte*) { munmap(memory, length); }};
}

/// Writes elements as another type; in chunks, since a converted copy of a large array would need
/// as much memory again.
bool write_elements(const ArrayView& array, ElementType type, std::FILE* file) {
    const std::uint64_t count = element_count(array.shape);
    if (array.type == type) {
        return std::fwrite(array.data, element_size(type), count, file) == count;
    }
    const auto* const elements = static_cast<const std::byte*>(array.data);
    for (std::uint64_t done = 0; done < count; done += elements_of_a_piece) {
        const std::uint64_t piece = std::min(count - done, elements_of_a_piece);
        const ArrayView part{array.type, {&piece, 1}, elements + done * element_size(array.type)};
        const std::vector<std::byte> bytes = converted(part, type);
        if (std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size()) {
            return false;
        }
    }
    return true;
}

thread_local std::string chosen_directory;

bool is_directory(const std::string& path) {
    struct stat status{};
    return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// Refuses a path below something that is not a folder, such as a dangling link: its files are
/// lost, not merely omitted.
void require_folders(const std::string& path) {
    for (std::size_t end = path.rfind('/'); end != std::string::npos && end > 0;
         end = path.rfind('/', end - 1)) {
        const std::string folder = path.substr(0, end);
        struct stat status{};
        if (is_directory(folder)) {
            return;
        }
        if (lstat(folder.c_str(), &status) == 0) {
            fail(folder, S_ISLNK(status.st_mode) ? "a link to no folder" : "not a folder");
        }
    }
}

/// The folder of the executable or shared object that contains this code; empty if unknown.
std::string own_directory() {
    Dl_info info{};
    const char* path = nullptr;
    if (dladdr(reinterpret_cast<const void*>(&own_directory), &info) != 0) {
        path = info.dli_fname;
    }
    // The loader knows an executable that was found on PATH without its folder.
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

Array read_npy(const std::string& path) {
    // Opening a pipe would block until someone writes to it.
    const File file = file_exists(path) ? open(path, "rb") : nullptr;
    if (file == nullptr) {
        fail(path, std::strerror(ENOENT));
    }
    const Header header = read_header(path, file.get());
    const std::size_t size = element_size(header.type);
    std::uint64_t wanted = size;
    for (const std::uint64_t extent : header.shape) {
        if (__builtin_mul_overflow(wanted, extent, &wanted)) {
            fail(path, "the shape " + shape_text(header.shape) + " is too large");
        }
    }
    const std::uint64_t present = remaining_bytes(path, file.get());
    // Checked before memory is allocated: a damaged header must not exhaust it.
    if (wanted != present) {
        fail(path, "the file holds " + std::to_string(present) + " bytes of elements, its shape " +
                       shape_text(header.shape) + " needs " + std::to_string(wanted));
    }
    const bool as_it_is = !header.big_endian && (!header.fortran_order || header.shape.size() <= 1);
    if (auto mapped = as_it_is ? map_rest(file.get(), wanted, size) : nullptr) {
        return {header.type, header.shape, {}, std::move(mapped)};
    }
    std::vector<std::byte> bytes(wanted);
    if (std::fread(bytes.data(), 1, wanted, file.get()) != wanted) {
        fail(path, "the file is truncated");
    }
    if (header.big_endian) {
        swap_bytes(bytes, size);
    }
    if (header.fortran_order && header.shape.size() > 1) {
        bytes = row_major(bytes, header.shape, size);
    }
    return {header.type, header.shape, std::move(bytes)};
}

void write_npy(const std::string& path, const ArrayView& array) {
    const ElementType type =
        array.type == ElementType::bfloat16 ? ElementType::float32 : array.type;
    const auto* const code = std::find_if(std::begin(type_codes), std::end(type_codes),
                                          [&](const auto& row) { return row.type == type; });
    const std::size_t size = element_size(type);
    std::string header = std::string("{'descr': '") + (size == 1 ? '|' : '<');
    header += code->text;
    header += "', 'fortran_order': False, 'shape': " + shape_text(array.shape) + ", }";
    // The elements start at a multiple of 64 bytes; the header ends with a line feed.
    const std::size_t unpadded = magic.size() + 4 + header.size() + 1;
    header.append((64 - unpadded % 64) % 64, ' ');
    header += '\n';
    const char start[4] = {1, 0, static_cast<char>(header.size() & 0xff),
                           static_cast<char>(header.size() >> 8)};

    File file = open(path, "wb");
    const bool written =
        std::fwrite(magic.data(), 1, magic.size(), file.get()) == magic.size() &&
        std::fwrite(start, 1, sizeof start, file.get()) == sizeof start &&
        std::fwrite(header.data(), 1, header.size(), file.get()) == header.size() &&
        write_elements(array, type, file.get());
    // Only fclose reports whether the last block reached the disk.
    if (!written || std::fclose(file.release()) != 0) {
        fail(path, std::string("cannot write: ") + std::strerror(errno));
    }
}

bool file_exists(const std::string& path) {
    struct stat status{};
    const bool is_found = stat(path.c_str(), &status) == 0;
    if (is_found ? !S_ISREG(status.st_mode) : lstat(path.c_str(), &status) == 0) {
        fail(path, is_found ? "not a regular file" : "a link to nothing");
    }
    if (!is_found && errno != ENOENT && errno != ENOTDIR) {
        fail(path, std::strerror(errno));
    }
    if (!is_found) {
        require_folders(path);
    }
    return is_found;
}

std::string installed_directory(const char* variable, const std::string& name) {
    if (const char* chosen = getenv(variable); chosen != nullptr && *chosen != '\0') {
        return chosen;
    }
    const std::string own = own_directory();
    for (const char* relative : {"/", "/../"}) {
        struct stat status{};
        // A path that is not a folder is reported by name as soon as a file in it is needed.
        if (!own.empty() && lstat((own + relative + name).c_str(), &status) == 0) {
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
