#include "tt-metalium/tensor_accessor_args.hpp"

#include "core/describe.hpp"
#include "tt-metalium/device.hpp"

namespace tt::tt_metal {

using tensor_accessor::ArgConfig;
using tensor_accessor::ArgsConfig;

namespace {

/// Coordinates of two banks per word: 8 bits of x above 8 bits of y, the first bank low.
void append_bank_coordinates(const Buffer& buffer, std::vector<std::uint32_t>& args) {
    const auto& cores = buffer.buffer_distribution_spec()->cores();
    std::vector<std::uint32_t> halves;
    for (const CoreCoord& core : cores) {
        const CoreCoord place = buffer.is_dram() ? core
                                                 : buffer.device()->virtual_core_from_logical_core(
                                                       core, buffer.core_type());
        halves.push_back(static_cast<std::uint32_t>((place.x & 0xFF) << 8 | (place.y & 0xFF)));
    }
    for (std::size_t i = 0; i < halves.size(); i += 2) {
        args.push_back(halves[i] | (i + 1 < halves.size() ? halves[i + 1] << 16 : 0));
    }
}

/// Appends the runtime part of a sharded buffer's description, or the compile-time part.
void append_shards(const Buffer& buffer, ArgsConfig config, bool at_run_time,
                   std::vector<std::uint32_t>& args) {
    const auto& spec = *buffer.buffer_distribution_spec();
    const Shape& tensor = spec.tensor_shape_in_pages();
    const Shape& shard = spec.shard_shape_in_pages();
    TT_FATAL(tensor.rank() <= TensorAccessorArgs::MAX_NUM_DIMENSIONS,
             "Rank must be less than or equal to {}", TensorAccessorArgs::MAX_NUM_DIMENSIONS);
    if (config.test(ArgConfig::RuntimeRank) == at_run_time) {
        args.push_back(static_cast<std::uint32_t>(tensor.rank()));
    }
    if (config.test(ArgConfig::RuntimeNumBanks) == at_run_time) {
        args.push_back(static_cast<std::uint32_t>(spec.num_cores()));
    }
    if (config.test(ArgConfig::RuntimeTensorShape) == at_run_time) {
        args.insert(args.end(), tensor.cbegin(), tensor.cend());
    }
    if (config.test(ArgConfig::RuntimeShardShape) == at_run_time) {
        args.insert(args.end(), shard.cbegin(), shard.cend());
    }
    if (config.test(ArgConfig::RuntimeBankCoords) == at_run_time) {
        append_bank_coordinates(buffer, args);
    }
}

}  // namespace

TensorAccessorArgs::TensorAccessorArgs(const Buffer& buffer, ArgsConfig args_config)
    : TensorAccessorArgs(&buffer, args_config) {}

TensorAccessorArgs::TensorAccessorArgs(const Buffer* buffer, ArgsConfig args_config)
    : buffer_(buffer), args_config_(args_config) {
    update_args_config();
}

TensorAccessorArgs::TensorAccessorArgs(const std::shared_ptr<Buffer>& buffer,
                                       ArgsConfig args_config)
    : TensorAccessorArgs(buffer.get(), args_config) {}

TensorAccessorArgs::TensorAccessorArgs(const distributed::MeshBuffer& buffer,
                                       ArgsConfig args_config)
    : TensorAccessorArgs(buffer.get_reference_buffer(), args_config) {}

TensorAccessorArgs::TensorAccessorArgs(const distributed::MeshBuffer* buffer,
                                       ArgsConfig args_config)
    : TensorAccessorArgs(buffer == nullptr ? nullptr : buffer->get_reference_buffer(),
                         args_config) {}

TensorAccessorArgs::TensorAccessorArgs(const std::shared_ptr<distributed::MeshBuffer>& buffer,
                                       ArgsConfig args_config)
    : TensorAccessorArgs(buffer.get(), args_config) {}

TensorAccessorArgs TensorAccessorArgs::create_dram_interleaved() {
    TensorAccessorArgs args;
    args.args_config_ = ArgConfig::IsDram;
    return args;
}

TensorAccessorArgs TensorAccessorArgs::create_l1_interleaved() { return {}; }

void TensorAccessorArgs::update_args_config() {
    if (buffer_ == nullptr) {
        args_config_ = ArgConfig::None;
        return;
    }
    if (buffer_->buffer_distribution_spec().has_value()) {
        args_config_.set(ArgConfig::Sharded);
    } else {
        args_config_ = ArgConfig::None;
    }
    args_config_.set(ArgConfig::IsDram, buffer_->is_dram());
    TT_FATAL(!args_config_.test(ArgConfig::RuntimeRank) ||
                 (args_config_.test(ArgConfig::RuntimeTensorShape) &&
                  args_config_.test(ArgConfig::RuntimeShardShape)),
             "If rank is runtime, tensor_shape and shard_shape must also be runtime");
    TT_FATAL(!args_config_.test(ArgConfig::RuntimeNumBanks) ||
                 args_config_.test(ArgConfig::RuntimeBankCoords),
             "If num_banks is runtime, bank_coords must also be runtime");
}

std::vector<std::uint32_t> TensorAccessorArgs::get_compile_time_args() const {
    std::vector<std::uint32_t> args{
        args_config_.raw(),
        buffer_ == nullptr ? 0 : static_cast<std::uint32_t>(buffer_->aligned_page_size())};
    if (args_config_.test(ArgConfig::Sharded)) {
        append_shards(*buffer_, args_config_, false, args);
    }
    return args;
}

std::vector<std::uint32_t> TensorAccessorArgs::get_common_runtime_args() const {
    std::vector<std::uint32_t> args;
    if (args_config_.test(ArgConfig::Sharded)) {
        append_shards(*buffer_, args_config_, true, args);
    }
    return args;
}

void TensorAccessorArgs::append_to(std::vector<std::uint32_t>& compile_time_args) const {
    TT_FATAL((args_config_ & ArgConfig::Runtime).raw() == 0,
             "Common runtime arguments are required for ArgsConfig {}",
             static_cast<std::uint32_t>(args_config_.raw()));
    const auto args = get_compile_time_args();
    compile_time_args.insert(compile_time_args.end(), args.begin(), args.end());
}

void TensorAccessorArgs::append_to(std::vector<std::uint32_t>& compile_time_args,
                                   std::vector<std::uint32_t>& common_runtime_args) const {
    const auto args = get_compile_time_args();
    compile_time_args.insert(compile_time_args.end(), args.begin(), args.end());
    const auto common = get_common_runtime_args();
    common_runtime_args.insert(common_runtime_args.end(), common.begin(), common.end());
}

}  // namespace tt::tt_metal
