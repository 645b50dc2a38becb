// Runs one program of kernels on the emulated device, as a text describes it: `launch FILE`.
//
// Each line is a word and what belongs to it; lines after `kernel` belong to that kernel.
//
//     tensor NAME PAGES PAGE_BYTES FILE          in DRAM, with the contents of a file
//     buffer FORMAT PAGES PAGE_BYTES INDEX...    a circular buffer of all cores
//     borrowed ...                               the same, in memory that is a tensor's as well
//     semaphore VALUE
//     kernel FILE read|write|compute X0 Y0 X1 Y1
//     setting NAME VALUE                         fidelity, fp32, approximate or unpack_to_fp32
//     define NAME VALUE
//     named NAME VALUE
//     compile VALUE...                           a number, or accessor:TENSOR
//     arguments X Y VALUE...                     a number, TENSOR, or column:N and row:N on the NoC
//     result NAME FILE                           is written there afterwards
#include <tt-metalium/bfloat16.hpp>
#include <tt-metalium/distributed.hpp>
#include <tt-metalium/host_api.hpp>
#include <tt-metalium/tensor_accessor_args.hpp>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace tt::tt_metal;
using distributed::MeshBuffer;
using distributed::MeshDevice;
using Words = std::vector<std::string>;

const std::map<std::string, tt::DataFormat> kFormats{{"bf16", tt::DataFormat::Float16_b},
                                                     {"f32", tt::DataFormat::Float32},
                                                     {"u32", tt::DataFormat::UInt32}};
const std::map<std::string, MathFidelity> kFidelities{{"lofi", MathFidelity::LoFi},
                                                      {"hifi2", MathFidelity::HiFi2},
                                                      {"hifi3", MathFidelity::HiFi3},
                                                      {"hifi4", MathFidelity::HiFi4}};

std::uint32_t number(const std::string& word) {
    return static_cast<std::uint32_t>(std::stoul(word, nullptr, 0));
}

struct KernelText {
    std::string file;
    std::string kind;
    CoreRange cores{{0, 0}, {0, 0}};
    std::map<std::string, std::string> settings;
    std::map<std::string, std::string> defines;
    std::unordered_map<std::string, std::uint32_t> named;
    std::vector<std::uint32_t> compile;
    std::vector<Words> arguments;
};

class Launch {
  public:
    explicit Launch(const std::string& file) {
        std::ifstream lines(file);
        for (std::string line; std::getline(lines, line);) {
            std::istringstream text(line);
            const Words words{std::istream_iterator<std::string>(text), {}};
            if (!words.empty()) {
                take(words);
            }
        }
    }

    void run() {
        const CoreCoord grid = device_->compute_with_storage_grid_size();
        const CoreRange all({0, 0}, {grid.x - 1, grid.y - 1});
        for (const Words& words : buffers_) {
            add_buffer(words, all);
        }
        for (const Words& words : semaphores_) {
            CreateSemaphore(program_, all, number(words[1]));
        }
        for (const KernelText& kernel : kernels_) {
            add_kernel(kernel);
        }
        distributed::MeshWorkload workload;
        workload.add_program(distributed::MeshCoordinateRange(device_->shape()),
                             std::move(program_));
        distributed::EnqueueMeshWorkload(device_->mesh_command_queue(), workload, true);
        for (const Words& words : results_) {
            std::vector<std::uint32_t> contents;
            distributed::EnqueueReadMeshBuffer(device_->mesh_command_queue(), contents,
                                               tensors_.at(words[1]), true);
            std::ofstream(words[2], std::ios::binary)
                .write(reinterpret_cast<const char*>(contents.data()),
                       static_cast<std::streamsize>(contents.size() * 4));
        }
        device_->close();
    }

  private:
    void take(const Words& words) {
        const std::string& what = words[0];
        if (what == "tensor") {
            add_tensor(words);
        } else if (what == "buffer" || what == "borrowed") {
            buffers_.push_back(words);
        } else if (what == "semaphore") {
            semaphores_.push_back(words);
        } else if (what == "result") {
            results_.push_back(words);
        } else if (what == "kernel") {
            KernelText& kernel = kernels_.emplace_back();
            kernel.file = words[1];
            kernel.kind = words[2];
            kernel.cores =
                CoreRange({number(words[3]), number(words[4])}, {number(words[5]), number(words[6])});
        } else {
            take_of_kernel(kernels_.back(), words);
        }
    }

    void take_of_kernel(KernelText& kernel, const Words& words) {
        const std::string& what = words[0];
        if (what == "setting") {
            kernel.settings[words[1]] = words[2];
        } else if (what == "named") {
            kernel.named[words[1]] = number(words[2]);
        } else if (what == "define") {
            std::string value;
            for (std::size_t i = 2; i < words.size(); ++i) {
                value += words[i] + " ";
            }
            kernel.defines[words[1]] = value;
        } else if (what == "compile") {
            for (std::size_t i = 1; i < words.size(); ++i) {
                add_compile_argument(kernel, words[i]);
            }
        } else if (what == "arguments") {
            kernel.arguments.push_back(words);
        } else {
            throw std::runtime_error("unknown line: " + what);
        }
    }

    void add_compile_argument(KernelText& kernel, const std::string& word) {
        const std::string mark = "accessor:";
        if (word.starts_with(mark)) {
            TensorAccessorArgs(*tensors_.at(word.substr(mark.size()))).append_to(kernel.compile);
        } else {
            kernel.compile.push_back(number(word));
        }
    }

    void add_tensor(const Words& words) {
        const std::uint64_t bytes = std::uint64_t{number(words[2])} * number(words[3]);
        std::shared_ptr<MeshBuffer> buffer = MeshBuffer::create(
            distributed::ReplicatedBufferConfig{.size = bytes},
            {.page_size = number(words[3]), .buffer_type = BufferType::DRAM}, device_.get());
        std::vector<std::uint32_t> contents(bytes / 4);
        std::ifstream(words[4], std::ios::binary)
            .read(reinterpret_cast<char*>(contents.data()), static_cast<std::streamsize>(bytes));
        distributed::EnqueueWriteMeshBuffer(device_->mesh_command_queue(), buffer, contents, true);
        tensors_[words[1]] = buffer;
    }

    void add_buffer(const Words& words, const CoreRange& cores) {
        const std::uint32_t page = number(words[3]);
        std::map<std::uint8_t, tt::DataFormat> formats;
        for (std::size_t i = 4; i < words.size(); ++i) {
            formats[static_cast<std::uint8_t>(number(words[i]))] = kFormats.at(words[1]);
        }
        CircularBufferConfig config(number(words[2]) * page, formats);
        for (const auto& [index, format] : formats) {
            config.set_page_size(index, page);
        }
        if (words[0] == "borrowed") {
            const std::uint32_t bytes = number(words[2]) * page;
            lenders_.push_back(MeshBuffer::create(
                distributed::ReplicatedBufferConfig{.size = cores.size() * bytes},
                {.page_size = bytes, .buffer_type = BufferType::L1}, device_.get()));
            config.set_globally_allocated_address(*lenders_.back()->get_reference_buffer());
        }
        CreateCircularBuffer(program_, cores, config);
    }

    KernelHandle create(const KernelText& kernel) {
        if (kernel.kind != "compute") {
            const ReaderDataMovementConfig reader(kernel.compile, kernel.defines, kernel.named);
            const WriterDataMovementConfig writer(kernel.compile, kernel.defines, kernel.named);
            return kernel.kind == "read" ? CreateKernel(program_, kernel.file, kernel.cores, reader)
                                         : CreateKernel(program_, kernel.file, kernel.cores, writer);
        }
        ComputeConfig config;
        const auto setting = [&](const char* name, const char* otherwise) {
            const auto found = kernel.settings.find(name);
            return found == kernel.settings.end() ? std::string(otherwise) : found->second;
        };
        config.math_fidelity = kFidelities.at(setting("fidelity", "hifi4"));
        config.fp32_dest_acc_en = setting("fp32", "0") == "1";
        config.math_approx_mode = setting("approximate", "0") == "1";
        if (const std::string index = setting("unpack_to_fp32", ""); !index.empty()) {
            config.unpack_to_dest_mode.assign(NUM_CIRCULAR_BUFFERS, UnpackToDestMode::Default);
            config.unpack_to_dest_mode[number(index)] = UnpackToDestMode::UnpackToDestFp32;
        }
        config.compile_args = kernel.compile;
        config.defines = kernel.defines;
        config.named_compile_args = kernel.named;
        return CreateKernel(program_, kernel.file, kernel.cores, config);
    }

    void add_kernel(const KernelText& kernel) {
        const KernelHandle handle = create(kernel);
        for (const Words& words : kernel.arguments) {
            std::vector<std::uint32_t> values;
            for (std::size_t i = 3; i < words.size(); ++i) {
                values.push_back(argument(words[i]));
            }
            SetRuntimeArgs(program_, handle, CoreCoord{number(words[1]), number(words[2])}, values);
        }
    }

    std::uint32_t argument(const std::string& word) {
        if (const auto found = tensors_.find(word); found != tensors_.end()) {
            return static_cast<std::uint32_t>(found->second->address());
        }
        const auto place = [&](const std::string& mark) -> std::uint32_t {
            return number(word.substr(mark.size()));
        };
        if (word.starts_with("column:")) {
            return static_cast<std::uint32_t>(
                device_->worker_core_from_logical_core({place("column:"), 0}).x);
        }
        if (word.starts_with("row:")) {
            return static_cast<std::uint32_t>(
                device_->worker_core_from_logical_core({0, place("row:")}).y);
        }
        return number(word);
    }

    std::shared_ptr<MeshDevice> device_ = MeshDevice::create_unit_mesh(0);
    Program program_ = CreateProgram();
    std::map<std::string, std::shared_ptr<MeshBuffer>> tensors_;
    std::vector<std::shared_ptr<MeshBuffer>> lenders_;
    std::vector<Words> buffers_;
    std::vector<Words> semaphores_;
    std::vector<Words> results_;
    std::vector<KernelText> kernels_;
};

}  // namespace

int main(int count, char** words) {
    try {
        if (count != 2) {
            throw std::runtime_error("usage: launch FILE");
        }
        Launch(words[1]).run();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
