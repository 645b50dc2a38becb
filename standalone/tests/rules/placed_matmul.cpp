// Matmuls of sharded tensors, with the program configs of the table.

#include <regex>

#include "call.hpp"
#include "ttnn/operations/matmul/matmul.hpp"

namespace rules {

namespace {

namespace mm = ttnn::operations::matmul;

constexpr std::size_t kGrid = 8;

/// The words between the brackets of "MultiCast(grid=8x8,k=2,sub=1x4,pcM=1,pcN=4)".
class Fields {
  public:
    explicit Fields(const std::string& text) : words_(split(text, ',')) {}

    bool has(const std::string& word) const {
        return std::find(words_.begin(), words_.end(), word) != words_.end();
    }
    std::string text(const std::string& key) const {
        for (const std::string& word : words_) {
            if (word.starts_with(key + "=")) {
                return word.substr(key.size() + 1);
            }
        }
        return "";
    }
    std::size_t number(const std::string& key, std::size_t otherwise = 0) const {
        const std::string found = text(key);
        return found.empty() ? otherwise : std::stoul(found);
    }
    bool flag(const std::string& key, bool otherwise) const {
        const std::string found = text(key);
        return found.empty() ? otherwise : found == "True";
    }
    std::pair<std::size_t, std::size_t> pair(const std::string& key,
                                             std::pair<std::size_t, std::size_t> otherwise) const {
        const std::string found = text(key);
        if (found.empty()) {
            return otherwise;
        }
        const auto numbers = numbers_of(found);
        return {static_cast<std::size_t>(numbers.at(0)), static_cast<std::size_t>(numbers.at(1))};
    }
    /// grid=8x8, or 8x8 alone
    tt::tt_metal::CoreCoord grid() const {
        static const std::regex size(R"(\d+x\d+)");
        for (const std::string& word : words_) {
            if (std::regex_match(word, size)) {
                const auto numbers = numbers_of(word);
                return {static_cast<std::size_t>(numbers[0]), static_cast<std::size_t>(numbers[1])};
            }
        }
        const auto [columns, rows] = pair("grid", {kGrid, kGrid});
        return {columns, rows};
    }

  private:
    std::vector<std::string> words_;
};

std::optional<ttnn::UnaryWithParam> activation_of(const Fields& fields) {
    const std::string name = fields.text("act");
    if (name.empty()) {
        return std::nullopt;
    }
    return ttnn::UnaryWithParam(name == "RELU"   ? ttnn::UnaryOpType::RELU
                                : name == "GELU" ? ttnn::UnaryOpType::GELU
                                                 : ttnn::UnaryOpType::SILU);
}

/// The block fields, which are common to three kinds.
template <typename Config>
void set_blocks(Config& config, const Fields& fields) {
    config.compute_with_storage_grid_size = fields.grid();
    config.in0_block_w = fields.number("k", 1);
    std::tie(config.out_subblock_h, config.out_subblock_w) = fields.pair("sub", {1, 1});
    config.per_core_M = fields.number("pcM", 1);
    config.per_core_N = fields.number("pcN", 1);
    if constexpr (requires { config.out_block_h; }) {
        std::tie(config.out_block_h, config.out_block_w) =
            fields.pair("ob", {config.per_core_M, config.per_core_N});
        config.fused_activation = activation_of(fields);
        config.fuse_batch = fields.flag("fb", true);
    }
}

mm::MatmulProgramConfig config_of(const std::string& kind, const Fields& fields) {
    if (kind == "MultiCast") {
        mm::MatmulMultiCoreReuseMultiCastProgramConfig config;
        set_blocks(config, fields);
        config.transpose_mcast = fields.flag("tr", false);
        return config;
    }
    if (kind == "1D") {
        mm::MatmulMultiCoreReuseMultiCast1DProgramConfig config;
        set_blocks(config, fields);
        config.mcast_in0 = fields.flag("in0", !fields.has("in1"));
        config.gather_in0 = fields.has("gather_in0");
        config.untilize_out = fields.has("untilize_out");
        return config;
    }
    if (kind == "Reuse") {
        mm::MatmulMultiCoreReuseProgramConfig config;
        set_blocks(config, fields);
        return config;
    }
    mm::MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig config;
    config.in0_block_w = fields.number("k", 1);
    config.per_core_M = fields.number("pcM", 1);
    config.per_core_N = fields.number("pcN", 1);
    config.fused_activation = activation_of(fields);
    return config;
}

/// "MultiCast(...)" and the like at any place of the variant.
std::optional<const mm::MatmulProgramConfig> take_config(Call& call) {
    static const std::regex form(R"((MultiCast|1D|Reuse|DRAMSharded)\(([^)]*)\))");
    const std::string variant = call.row().variant;
    std::smatch found;
    if (!std::regex_search(variant, found, form)) {
        return std::nullopt;
    }
    const Fields fields(found[2].str());
    // A configuration is given in full if its blocks are.
    if (fields.text("pcN").empty()) {
        throw Unmapped{"a configuration that the row does not give in full"};
    }
    call.take(found[0].str());
    return std::optional<const mm::MatmulProgramConfig>(config_of(found[1].str(), fields));
}

std::optional<const ttnn::DeviceComputeKernelConfig> take_compute_config(Call& call) {
    const auto words = call.value("ck");
    if (!words) {
        return std::nullopt;
    }
    ttnn::DeviceComputeKernelConfig config;
    for (const std::string& word : split(*words, '+')) {
        config.math_fidelity = word == "HiFi4"   ? tt::tt_metal::MathFidelity::HiFi4
                               : word == "HiFi3" ? tt::tt_metal::MathFidelity::HiFi3
                               : word == "HiFi2" ? tt::tt_metal::MathFidelity::HiFi2
                                                 : config.math_fidelity;
        config.fp32_dest_acc_en = config.fp32_dest_acc_en || word == "fp32acc";
        config.packer_l1_acc = config.packer_l1_acc || word == "l1acc";
        config.dst_full_sync_en = config.dst_full_sync_en || word == "fullsync";
    }
    return std::optional<const ttnn::DeviceComputeKernelConfig>(config);
}

std::optional<const ttnn::CoreGrid> take_core_grid(Call& call) {
    const auto size = call.value("core_grid");
    if (!size) {
        return std::nullopt;
    }
    const auto numbers = numbers_of(*size);
    return std::optional<const ttnn::CoreGrid>(ttnn::CoreGrid(
        static_cast<std::size_t>(numbers.at(0)), static_cast<std::size_t>(numbers.at(1))));
}

std::optional<const ttnn::Activation> take_activation(Call& call) {
    std::optional<std::string> name = call.value("activation");
    if (!name && call.take("gelu")) {
        name = "gelu";
    }
    return name ? std::optional<const ttnn::Activation>(*name) : std::nullopt;
}

Results product(Call& call, bool with_bias) {
    const auto resident = call.take_resident();
    const auto program = take_config(call);
    const auto compute = take_compute_config(call);
    const auto grid = take_core_grid(call);
    const auto activation = take_activation(call);
    const std::optional<const MemoryConfig> memory_config(call.memory_config());
    const std::optional<const DataType> dtype(call.dtype());
    const bool transpose_a = call.take("transpose_a");
    const bool transpose_b = call.take("transpose_b");
    call.take("batched B");
    call.take("size");
    if (!with_bias) {
        return ttnn::matmul(call.input(0), call.input(1), transpose_a, transpose_b, memory_config,
                            dtype, program, activation, compute, grid);
    }
    call.take("bias (1,N)");
    call.take("bias");
    return ttnn::linear(call.input(0), call.input(1), call.input(2), transpose_a, transpose_b,
                        memory_config, dtype, program, activation, compute, grid);
}

}  // namespace

void add_placed_matmul(Operations& operations) {
    operations["matmul"] = [](Call& call) { return product(call, false); };
    operations["linear"] = [](Call& call) { return product(call, true); };
}

}  // namespace rules
