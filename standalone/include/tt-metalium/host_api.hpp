#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tt-metalium/buffer.hpp"
#include "tt-metalium/circular_buffer.hpp"
#include "tt-metalium/circular_buffer_config.hpp"
#include "tt-metalium/device.hpp"
#include "tt-metalium/device_types.hpp"
#include "tt-metalium/dispatch_core_common.hpp"
#include "tt-metalium/kernel_types.hpp"
#include "tt-metalium/program.hpp"
#include "tt-metalium/runtime_args_data.hpp"
#include "tt-metalium/sub_device_types.hpp"
#include "tt_stl/span.hpp"

namespace tt::tt_metal {

class GlobalSemaphore;

std::size_t GetNumAvailableDevices();
std::size_t GetNumPCIeDevices();

Program CreateProgram();

/// Adds a kernel from a file. A relative path is searched for in the working directory, then in
/// TT_METAL_KERNEL_PATH, then in TT_METAL_RUNTIME_ROOT.
/// @throws std::runtime_error if there is no such file, a core is not on the grid, or that
/// processor of a core already has a kernel.
KernelHandle CreateKernel(Program& program, const std::string& file_name,
                          const std::variant<CoreCoord, CoreRange, CoreRangeSet>& core_spec,
                          const std::variant<DataMovementConfig, ComputeConfig>& config);
KernelHandle CreateKernelFromString(
    Program& program, const std::string& kernel_src_code,
    const std::variant<CoreCoord, CoreRange, CoreRangeSet>& core_spec,
    const std::variant<DataMovementConfig, ComputeConfig>& config);

CBHandle CreateCircularBuffer(Program& program,
                              const std::variant<CoreCoord, CoreRange, CoreRangeSet>& core_spec,
                              const CircularBufferConfig& config);
const CircularBufferConfig& GetCircularBufferConfig(Program& program, CBHandle cb_handle);
void UpdateCircularBufferTotalSize(Program& program, CBHandle cb_handle, std::uint32_t total_size);
void UpdateCircularBufferPageSize(Program& program, CBHandle cb_handle, std::uint8_t buffer_index,
                                  std::uint32_t page_size);
void UpdateDynamicCircularBufferAddress(Program& program, CBHandle cb_handle, const Buffer& buffer);
void UpdateDynamicCircularBufferAddressAndTotalSize(Program& program, CBHandle cb_handle,
                                                    const Buffer& buffer, std::uint32_t total_size);

/// @return The semaphore's id, which kernels convert to an address with get_semaphore.
std::uint32_t CreateSemaphore(Program& program,
                              const std::variant<CoreRange, CoreRangeSet>& core_spec,
                              std::uint32_t initial_value);

/// A word at the same L1 address of each of the cores, on all devices of a mesh.
GlobalSemaphore CreateGlobalSemaphore(IDevice* device, const CoreRangeSet& cores,
                                      std::uint32_t initial_value,
                                      BufferType buffer_type = BufferType::L1);

std::shared_ptr<Buffer> CreateBuffer(const InterleavedBufferConfig& config);
std::shared_ptr<Buffer> CreateBuffer(const ShardedBufferConfig& config);
void DeallocateBuffer(Buffer& buffer);
void AssignGlobalBufferToProgram(const std::shared_ptr<Buffer>& buffer, Program& program);

void SetRuntimeArgs(const Program& program, KernelHandle kernel,
                    const std::variant<CoreCoord, CoreRange, CoreRangeSet>& core_spec,
                    ttsl::Span<const std::uint32_t> runtime_args);
void SetRuntimeArgs(const Program& program, KernelHandle kernel,
                    const std::variant<CoreCoord, CoreRange, CoreRangeSet>& core_spec,
                    std::initializer_list<std::uint32_t> runtime_args);
void SetRuntimeArgs(const Program& program, KernelHandle kernel,
                    const std::vector<CoreCoord>& core_spec,
                    const std::vector<std::vector<std::uint32_t>>& runtime_args);
void SetCommonRuntimeArgs(const Program& program, KernelHandle kernel_id,
                          ttsl::Span<const std::uint32_t> runtime_args);
void SetCommonRuntimeArgs(const Program& program, KernelHandle kernel_id,
                          std::initializer_list<std::uint32_t> runtime_args);
RuntimeArgsData& GetRuntimeArgs(const Program& program, KernelHandle kernel_id,
                                const CoreCoord& logical_core);
std::vector<std::vector<RuntimeArgsData>>& GetRuntimeArgs(const Program& program,
                                                          KernelHandle kernel_id);
RuntimeArgsData& GetCommonRuntimeArgs(const Program& program, KernelHandle kernel_id);

}  // namespace tt::tt_metal
