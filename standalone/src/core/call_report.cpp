#include "core/call_report.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <mutex>
#include <string>
#include <utility>

#include "core/chips.hpp"
#include "core/memory_use.hpp"
#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

namespace {

thread_local bool inside_call = false;

/// The value of an environment variable; null if it is unset or empty.
const char* variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr || *value == '\0' ? nullptr : value;
}

std::int64_t wall_nanoseconds() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

/// Processor time of all threads of the process.
std::int64_t processor_nanoseconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

std::string microseconds(std::int64_t nanoseconds) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3f", static_cast<double>(nanoseconds) / 1e3);
    return text.data();
}

/// The tensors of the devices of a mesh, or of a single device.
std::vector<Tensor> parts_or_self(const Tensor& tensor) {
    const auto& parts = parts_of(tensor);
    return parts.empty() ? std::vector<Tensor>{tensor} : parts;
}

std::uint64_t bytes_of(const Tensor& tensor) {
    std::uint64_t bytes = 0;
    for (const Tensor& part : parts_or_self(tensor)) {
        bytes += bytes_on_device(part.tensor_spec());
    }
    return bytes;
}

/// The numpy name of elements as they are written: floats of all widths as f32.
const char* element_type(DataType dtype) {
    switch (dtype) {
        case DataType::INT32:
            return "<i4";
        case DataType::UINT32:
            return "<u4";
        case DataType::UINT16:
            return "<u2";
        case DataType::UINT8:
            return "|u1";
        default:
            return "<f4";
    }
}

std::string list_of(const std::vector<std::size_t>& sizes) {
    std::string text;
    for (const std::size_t size : sizes) {
        text += (text.empty() ? "" : ", ") + std::to_string(size);
    }
    return text;
}

std::vector<std::size_t> sizes_of(const Tensor& tensor) {
    const auto view = tensor.logical_shape().view();
    return {view.begin(), view.end()};
}

/// Writes the elements as a .npy file, version 1.0; for a mesh, those of its devices in
/// order.
///
/// Source: numpy.lib.format of numpy's documentation. The header ends at a multiple of 64 bytes.
void write_elements(const Tensor& tensor, const std::string& path) {
    const DataType dtype = tensor.dtype();
    std::vector<std::size_t> sizes = sizes_of(tensor);
    if (const std::size_t devices = parts_of(tensor).size(); devices > 0) {
        sizes.insert(sizes.begin(), devices);
    }
    std::string header = std::string("{'descr': '") + element_type(dtype) +
                         "', 'fortran_order': False, 'shape': (" + list_of(sizes) +
                         (sizes.size() == 1 ? ",)" : ")") + ", }";
    constexpr std::size_t kMagic = 10;
    header.append(63 - (kMagic + header.size()) % 64, ' ');
    header += '\n';
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write("\x93NUMPY\x01\x00", 8);
    file.put(static_cast<char>(header.size() & 0xff)).put(static_cast<char>(header.size() >> 8));
    file << header;
    for (const Tensor& part : parts_or_self(tensor)) {
        const std::size_t count = part.logical_shape().volume();
        if (is_integer(dtype)) {
            file.write(reinterpret_cast<const char*>(buffer_of(part).data()),
                       static_cast<std::streamsize>(count * stored_size(dtype)));
        } else {
            const FloatElements floats(part);
            file.write(reinterpret_cast<const char*>(floats.data()),
                       static_cast<std::streamsize>(count * sizeof(float)));
        }
    }
    file.flush();
    TT_FATAL(file.good(), "Cannot write '{}' (TTCODEGEN_CALL_TENSORS)", path);
}

/// The name without its enumeration, such as `BFLOAT16`.
std::string name_of(DataType dtype) {
    const std::string text = describe(dtype);
    return text.substr(text.rfind(':') + 1);
}

/// The name of an enumerator without its enumeration, in lower case.
template <typename Enumerator>
std::string word_of(Enumerator value) {
    std::string text = describe(value);
    text.erase(0, text.rfind(':') + 1);
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

std::string shards_json(const tt::tt_metal::ShardSpec& shards) {
    std::string ranges;
    for (const auto& range : shards.grid.ranges()) {
        const auto& [first, last] = std::pair(range.start_coord, range.end_coord);
        ranges +=
            (ranges.empty() ? "[" : ", [") + list_of({first.x, first.y, last.x, last.y}) + "]";
    }
    const bool in_rows = shards.orientation == tt::tt_metal::ShardOrientation::ROW_MAJOR;
    return "{\"shape\": [" + list_of({shards.shape[0], shards.shape[1]}) + "], \"ranges\": [" +
           ranges + "], \"orientation\": \"" + (in_rows ? "row_major" : "col_major") + "\"}";
}

/// The place of a tensor; null on the host.
std::string memory_json(const Tensor& tensor) {
    if (!on_device(tensor)) {
        return "null";
    }
    const MemoryConfig& memory = tensor.memory_config();
    return "{\"layout\": \"" + word_of(memory.memory_layout()) + "\", \"buffer\": \"" +
           word_of(memory.buffer_type()) +
           "\", \"shards\": " + (memory.shard_spec() ? shards_json(*memory.shard_spec()) : "null") +
           "}";
}

std::string result_json(const Tensor& tensor, const std::string& file) {
    const Tensor part = parts_or_self(tensor).front();
    std::string text = "{\"shape\": [" + list_of(sizes_of(tensor)) + "], \"data_type\": \"" +
                       name_of(tensor.dtype()) +
                       "\", \"bytes\": " + std::to_string(bytes_of(tensor)) + ", \"page\": \"" +
                       word_of(part.layout()) + "\", \"memory\": " + memory_json(part);
    if (const std::size_t devices = parts_of(tensor).size(); devices > 0) {
        text += ", \"devices\": " + std::to_string(devices);
    }
    if (!file.empty()) {
        text += ", \"file\": \"" + file + "\"";
    }
    return text + "}";
}

/// Appends a line to the report. The file stays open until another one is named: opening it takes
/// longer than many calls.
void write_line(const std::string& line) {
    static std::mutex mutex;
    static std::string opened;
    static std::ofstream file;
    const char* path = variable("TTCODEGEN_CALL_REPORT");
    if (path == nullptr) {
        return;
    }
    const std::lock_guard lock(mutex);
    if (opened != path) {
        file = std::ofstream(path, std::ios::app);
        opened = path;
    }
    file << line;
    file.flush();
    TT_FATAL(file.good(), "Cannot write the report '{}' (TTCODEGEN_CALL_REPORT)", path);
}

}  // namespace

bool is_inside_call() { return inside_call; }
bool is_outermost_call() { return !inside_call && !current_chip(); }
bool reports_calls() { return is_outermost_call() && variable("TTCODEGEN_CALL_REPORT") != nullptr; }

OutermostCall::OutermostCall() { inside_call = true; }
OutermostCall::~OutermostCall() { inside_call = false; }

void Tensors::see(const Tensor& tensor) {
    if (tensor.tensor_attributes != nullptr) {
        found.push_back(tensor);
    }
}

std::uint64_t bytes_of(const Tensors& tensors) {
    std::uint64_t bytes = 0;
    for (const Tensor& tensor : tensors.found) {
        bytes += bytes_of(tensor);
    }
    return bytes;
}

ReportedCall::ReportedCall(const char* name, std::uint64_t read_bytes)
    : name_(name), read_bytes_(read_bytes) {
    processor_begin_ = processor_nanoseconds();
    begin_ = wall_nanoseconds();
}

void ReportedCall::returned(const Tensors& results) const {
    const std::int64_t end = wall_nanoseconds();
    const std::int64_t processor_end = processor_nanoseconds();
    static std::atomic<std::uint64_t> calls = 0;
    const std::string number = std::to_string(calls++);
    const char* folder = variable("TTCODEGEN_CALL_TENSORS");
    std::string outputs;
    for (std::size_t i = 0; i < results.found.size(); ++i) {
        const Tensor& tensor = results.found[i];
        std::string file;
        if (folder != nullptr && tensor.is_allocated()) {
            file = number + "." + std::to_string(i) + ".npy";
            write_elements(tensor, std::string(folder) + "/" + file);
        }
        outputs += (i == 0 ? "" : ", ") + result_json(tensor, file);
    }
    const std::string line =
        std::string("{\"op\": \"") + name_ + "\", \"begin_us\": " + microseconds(begin_) +
        ", \"wall_us\": " + microseconds(end - begin_) +
        ", \"processor_us\": " + microseconds(processor_end - processor_begin_) +
        ", \"read_bytes\": " + std::to_string(read_bytes_) + ", \"outputs\": [" + outputs + "]}\n";
    write_line(line);
}

}  // namespace ttcodegen::cpu
