#include "device/program_runner.hpp"

#include <algorithm>
#include <chrono>

#include "core/describe.hpp"
#include "device/run.hpp"
#include "tt-metalium/math.hpp"

namespace ttcodegen::device {

using tt::tt_metal::CircularBufferImpl;
using tt::tt_metal::ComputeConfig;

namespace {

/// Unowned guard bytes after each circular buffer, which detect stores beyond its end; fewer if L1
/// is nearly full.
constexpr std::uint32_t kOverrunBytes = 1024;

/// Places circular buffers one after another from the start of the free L1, `guard` bytes apart;
/// one that is on several cores has the same address on all of them.
/// @return The end of the last one.
std::uint32_t place_circular_buffers(EmulatedDevice& device,
                                     tt::tt_metal::detail::ProgramImpl& program,
                                     std::uint32_t guard) {
    const Architecture& architecture = device.architecture();
    std::vector<std::uint32_t> end(architecture.num_workers(), architecture.l1_unreserved_base);
    for (const auto& buffer : program.circular_buffers) {
        if (const auto address = buffer->config.globally_allocated_address()) {
            buffer->address = *address;
            continue;
        }
        std::uint32_t address = architecture.l1_unreserved_base;
        const auto cores = cores_of(buffer->cores);
        for (const CoreCoord& core : cores) {
            address = std::max(address, end[device.worker_index(core)]);
        }
        address = tt::round_up(address, architecture.dram_alignment);
        buffer->address = address;
        const std::uint64_t after = std::uint64_t{address} + buffer->config.total_size();
        TT_FATAL(
            after <= architecture.l1_size,
            "Statically allocated circular buffers on core range {} grow to {} B which is beyond "
            "max L1 size of {} B",
            buffer->cores.str(), after, architecture.l1_size);
        for (const CoreCoord& core : cores) {
            end[device.worker_index(core)] = static_cast<std::uint32_t>(after) + guard;
        }
    }
    return *std::max_element(end.begin(), end.end());
}

/// Places circular buffers as the release does, which decides whether they fit, and then again with
/// the remaining memory as gaps between them.
void place_circular_buffers(EmulatedDevice& device, tt::tt_metal::detail::ProgramImpl& program) {
    const Architecture& architecture = device.architecture();
    const auto lowest = device.l1().lowest_used();
    const std::uint32_t highest = place_circular_buffers(device, program, 0);
    TT_FATAL(!lowest || highest == architecture.l1_unreserved_base || *lowest >= highest,
             "Statically allocated circular buffers in program clash with L1 buffers. L1 buffer "
             "allocated at {} and static circular buffer region ends at {}",
             lowest.value_or(0), highest);
    const auto limit = static_cast<std::uint32_t>(lowest.value_or(device.l1().end()));
    const auto count = static_cast<std::uint32_t>(program.circular_buffers.size());
    if (count == 0 || limit <= highest) {
        return;
    }
    const std::uint32_t alignment = architecture.dram_alignment;
    const std::uint32_t room = (limit - highest) / count / alignment * alignment;
    place_circular_buffers(device, program, std::min(kOverrunBytes, room));
}

std::string list(const char* type, const char* name, const std::vector<std::uint32_t>& values) {
    std::string text = std::string("constexpr ") + type + " " + name + "[] = {";
    for (const std::uint32_t value : values) {
        text += std::to_string(value) + ",";
    }
    return text + "};\n";
}

/// The generated header chlkc_descriptors.h of kernels: formats and tiles by index.
std::string descriptors(const tt::tt_metal::detail::ProgramImpl& program, const Kernel& kernel,
                        std::uint32_t count) {
    std::vector<std::uint32_t> formats(count, 255);
    std::vector<std::uint32_t> sizes(count, 0);
    std::vector<std::uint32_t> heights(count, 32);
    std::vector<std::uint32_t> widths(count, 32);
    std::vector<std::uint32_t> faces(count, 4);
    const auto first = kernel.cores.ranges().front().start_coord;
    for (const auto& buffer : program.circular_buffers) {
        const auto on_kernel = [&](const CoreCoord& core) { return buffer->cores.contains(core); };
        const auto cores = cores_of(kernel.cores);
        if (!on_kernel(first) && std::none_of(cores.begin(), cores.end(), on_kernel)) {
            continue;
        }
        for (const std::uint8_t index : buffer->config.local_buffer_indices()) {
            const auto format = buffer->config.data_formats()[index];
            TT_FATAL(format.has_value(), "Circular buffer {} has no data format",
                     static_cast<std::uint32_t>(index));
            formats[index] = static_cast<std::uint32_t>(*format);
            sizes[index] = buffer->tile_size(index);
            const tt::tt_metal::Tile tile = buffer->tile(index);
            heights[index] = tile.get_height();
            widths[index] = tile.get_width();
            faces[index] = tile.get_num_faces();
        }
    }
    return list("unsigned char", "unpack_src_format", formats) +
           list("unsigned short", "unpack_tile_size", sizes) +
           list("unsigned char", "unpack_tile_r_dim", heights) +
           list("unsigned char", "unpack_tile_c_dim", widths) +
           list("unsigned char", "unpack_tile_num_faces", faces) +
           list("unsigned char", "pack_dst_format", formats) +
           list("unsigned short", "pack_tile_size", sizes) +
           list("unsigned char", "pack_tile_r_dim", heights) +
           list("unsigned char", "pack_tile_c_dim", widths) +
           list("unsigned char", "pack_tile_num_faces", faces);
}

void add_compute_defines(KernelRequest& request, const ComputeConfig& config) {
    const auto flag = [](bool value) { return value ? "true" : "false"; };
    request.defines["TTCODEGEN_FP32_DEST_ACC_EN"] = flag(config.fp32_dest_acc_en);
    request.defines["TTCODEGEN_DST_FULL_SYNC_EN"] = flag(config.dst_full_sync_en);
    request.defines["TTCODEGEN_MATH_APPROX_MODE"] = flag(config.math_approx_mode);
    request.defines["TTCODEGEN_MATH_FIDELITY"] =
        std::to_string(static_cast<std::uint32_t>(config.math_fidelity));
}

KernelRequest request_for(EmulatedDevice& device, const tt::tt_metal::detail::ProgramImpl& program,
                          const Kernel& kernel) {
    KernelRequest request;
    request.source = &kernel.source;
    request.processor = kernel.processor();
    request.noc = kernel.noc();
    request.architecture = device.architecture().name;
    request.num_dram_banks = static_cast<std::uint32_t>(device.architecture().dram_banks.size());
    request.num_l1_banks = device.architecture().num_workers();
    std::visit(
        [&](const auto& config) {
            request.compile_args = config.compile_args;
            request.named_compile_args = {config.named_compile_args.begin(),
                                          config.named_compile_args.end()};
            request.defines = config.defines;
        },
        kernel.config);
    if (const auto* config = std::get_if<ComputeConfig>(&kernel.config)) {
        add_compute_defines(request, *config);
    }
    request.descriptors = descriptors(program, kernel, device.architecture().num_circular_buffers);
    return request;
}

/// Places the circular buffers and compiles the kernels.
void prepare(EmulatedDevice& device, tt::tt_metal::detail::ProgramImpl& program) {
    place_circular_buffers(device, program);
    const auto begin = std::chrono::steady_clock::now();
    std::vector<KernelRequest> requests;
    for (const auto& kernel : program.kernels) {
        requests.push_back(request_for(device, program, *kernel));
    }
    const auto loaded = compile_kernels(requests);
    for (std::size_t i = 0; i < loaded.size(); ++i) {
        program.kernels[i]->loaded = loaded[i];
    }
    program.report.compile_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

void run_programs(EmulatedDevice& device, const std::vector<ChipProgram>& programs) {
    for (const auto& [chip, program] : programs) {
        prepare(device, *program);
    }
    const L1Addresses::Turn turn = device.turn();
    // One chip after the other, each until it waits for others.
    std::vector<std::unique_ptr<Run>> waiting;
    for (const auto& [chip, program] : programs) {
        auto run = std::make_unique<Run>(device, chip, *program);
        if (run->advance()) {
            continue;
        }
        if (run->computes()) {
            run->fail_in_deadlock();
        }
        waiting.push_back(std::move(run));
    }
    while (!waiting.empty()) {
        const std::size_t before = waiting.size();
        const std::uint64_t packets = device.packets();
        std::erase_if(waiting, [](const auto& run) { return run->advance(); });
        if (waiting.size() == before && device.packets() == packets) {
            waiting.front()->fail_in_deadlock();
        }
    }
}

}  // namespace ttcodegen::device
