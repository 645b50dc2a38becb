#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "include/ttcodegen/capi.h"

namespace support {
struct Module;
}  // namespace support

/// The implementation of the C API of all modules; the module's functions prefix its names with the
/// name of the module.
///
/// Nothing here throws: errors are returned as a status, with a message from `last_error`.
namespace support::capi {

int open(const Module& module, std::uint32_t api_version, const char* data, int device,
         ttcodegen_model** model) noexcept;
int open_beside(const Module& module, std::uint32_t api_version, const char* data,
                ttcodegen_model* other, ttcodegen_model** model) noexcept;
void close(ttcodegen_model* model) noexcept;
const char* last_error() noexcept;

/// Groups of the tensors of a function.
enum class Group { inputs, weights, outputs };

std::size_t function_count(const Module& module) noexcept;
/// The name of a function; null if there is no such function.
const char* function_name(const Module& module, std::size_t function) noexcept;
/// The number of tensors of a group; 0 if there is no such function.
std::size_t count(const Module& module, std::size_t function, Group group) noexcept;
int describe(const Module& module, std::size_t function, Group group, std::size_t index,
             ttcodegen_tensor* result) noexcept;
int set_weight(ttcodegen_model* model, std::size_t function, std::size_t weight,
               const ttcodegen_array* values) noexcept;
int draw_weights(ttcodegen_model* model, std::size_t function, std::uint64_t seed) noexcept;
int run(ttcodegen_model* model, std::size_t function, std::span<const ttcodegen_array> inputs,
        std::span<const ttcodegen_array> outputs) noexcept;

int to_device(ttcodegen_model* model, std::size_t function, std::size_t input,
              const ttcodegen_array* values, ttcodegen_device_tensor** tensor) noexcept;
int to_layout(ttcodegen_model* model, std::size_t function, std::size_t input,
              const ttcodegen_device_tensor* tensor, ttcodegen_device_tensor** result) noexcept;
int submit(ttcodegen_model* model, std::size_t function,
           std::span<const ttcodegen_device_tensor* const> inputs,
           std::span<ttcodegen_device_tensor*> outputs) noexcept;
int describe(const ttcodegen_device_tensor* tensor, ttcodegen_tensor* result) noexcept;
int to_host(const ttcodegen_device_tensor* tensor, const ttcodegen_array* values) noexcept;
void release(ttcodegen_device_tensor* tensor) noexcept;

}  // namespace support::capi
