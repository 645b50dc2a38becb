#include <filesystem>
#include <fstream>
#include <iterator>

#include "device/device_testing.hpp"
#include "tt-metalium/work_split.hpp"

using namespace device_testing;

namespace {

const std::string kKernels = std::string(TESTS_FOLDER) + "/device";

/// Copies a buffer tile by tile through a circular buffer of each core.
Program copy_program(const distributed::MeshBuffer& source, const distributed::MeshBuffer& target) {
    Program program = CreateProgram();
    const auto grid = device().compute_with_storage_grid_size();
    const auto [num_cores, cores, more, less, units_more, units_less] =
        split_work_to_cores(grid, source.num_pages());
    CreateCircularBuffer(program, cores,
                         CircularBufferConfig(2 * kTileBytes, {{0, tt::DataFormat::Float16_b}})
                             .set_page_size(0, kTileBytes));
    Arguments source_args;
    TensorAccessorArgs(source).append_to(source_args);
    Arguments target_args;
    TensorAccessorArgs(target).append_to(target_args);
    const auto reader = CreateKernel(program, kKernels + "/reader.cpp", cores,
                                     ReaderDataMovementConfig(source_args, {}, {{"cb_in", 0}}));
    const auto writer = CreateKernel(program, kKernels + "/writer.cpp", cores,
                                     WriterDataMovementConfig(target_args, {}, {{"cb_out", 0}}));
    std::uint32_t start = 0;
    for (std::size_t x = 0; x < grid.x; ++x) {
        for (std::size_t y = 0; y < grid.y; ++y) {
            const CoreCoord core{x, y};
            if (!cores.contains(core)) {
                continue;
            }
            const std::uint32_t count = more.contains(core) ? units_more : units_less;
            SetRuntimeArgs(program, reader, core,
                           {static_cast<std::uint32_t>(source.address()), start, count});
            SetRuntimeArgs(program, writer, core,
                           {static_cast<std::uint32_t>(target.address()), start, count});
            start += count;
        }
    }
    return program;
}

void copies(BufferType from, BufferType to, std::uint32_t tiles) {
    const auto source = make_counting(tiles * kTileBytes, kTileBytes, from);
    const auto target = make_buffer(tiles * kTileBytes, kTileBytes, to);
    const Program program = run(copy_program(*source, *target));
    expect(read(source) == read(target), "the copy is equal");
    const auto& report = ttcodegen::device::program_report(program);
    const std::uint64_t bytes = std::uint64_t{tiles} * kTileBytes;
    expect(report.total.noc_read_bytes == bytes, "bytes read are counted");
    expect(report.total.noc_written_bytes == bytes, "bytes written are counted");
    expect(report.total.dram_read_bytes == (from == BufferType::DRAM ? bytes : 0), "DRAM reads");
    expect(report.kernels.size() == 2 && report.kernels[0].processor == "NCRISC", "kernels");
    std::printf("%u tiles: compiled in %.3f s, ran in %.3f s\n", tiles, report.compile_seconds,
                report.run_seconds);
}

void reports_are_written_as_json() {
    const auto path = std::filesystem::temp_directory_path() / "ttcodegen_device_report.json";
    setenv("TTCODEGEN_DEVICE_REPORT", path.c_str(), 1);
    copies(BufferType::DRAM, BufferType::L1, 3);
    copies(BufferType::DRAM, BufferType::DRAM, 5);
    unsetenv("TTCODEGEN_DEVICE_REPORT");
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::filesystem::remove(path);
    for (const char* part :
         {"\"noc_read_bytes\": 6144", "\"dram_written_bytes\": 0", "\"dram_written_bytes\": 10240",
          "/reader.cpp\", \"processor\": \"NCRISC\", \"cores\": 3", "\"run_seconds\""}) {
        expect(text.find(part) != std::string::npos, std::string(part) + " in\n" + text);
    }
    expect(text.starts_with("[\n") && text.ends_with("]\n"), "a list");
}

}  // namespace

int main() {
    copies(BufferType::DRAM, BufferType::DRAM, 1);
    copies(BufferType::DRAM, BufferType::DRAM, 1000);
    copies(BufferType::DRAM, BufferType::L1, 300);
    copies(BufferType::L1, BufferType::DRAM, 300);
    reports_are_written_as_json();
    return 0;
}
