/// Macros for the headers of api/compute: calls through the backend's function table, and
/// definitions of the vector engine functions that differ in name only.
#pragma once

#include <initializer_list>

#include "ttcodegen/device/compute_functions.hpp"
#include "ttcodegen/device/compute_types.hpp"

#define ALWI inline __attribute__((always_inline))

/// The last parameter of each function of the kernel API: the location of the call.
#define TTCODEGEN_HERE ::ttcodegen::device::Location here = ::ttcodegen::device::Location::current()

namespace ttcodegen::device {

inline FpuMode fpu_mode(
    FpuOperation operation, ckernel::BroadcastType broadcast = ckernel::BroadcastType::NONE,
    ckernel::EltwiseBinaryReuseDestType reuse = ckernel::EltwiseBinaryReuseDestType::NONE) {
    FpuMode mode;
    mode.operation = operation;
    mode.broadcast = static_cast<Broadcast>(broadcast);
    mode.reuse = static_cast<ReuseDestination>(reuse);
    return mode;
}

inline FpuMode reduce_mode(ckernel::PoolType pool, ckernel::ReduceDim reduction) {
    FpuMode mode;
    mode.operation = FpuOperation::Reduce;
    mode.pool = static_cast<Pool>(pool);
    mode.reduction = static_cast<Reduction>(reduction);
    return mode;
}

template <ckernel::EltwiseBinaryType type>
constexpr FpuOperation binary_operation() {
    static_assert(type == ckernel::ELWADD || type == ckernel::ELWSUB || type == ckernel::ELWMUL,
                  "The matrix engine adds, subtracts and multiplies only");
    return type == ckernel::ELWADD   ? FpuOperation::Add
           : type == ckernel::ELWSUB ? FpuOperation::Subtract
                                     : FpuOperation::Multiply;
}

inline void prepare_fpu(const FpuMode& mode, const char* function, Location here,
                        const FpuParameters& parameters = {}, FpuParts parts = {}) {
    Processor& processor = current();
    compute_of(processor).prepare(processor, mode, parameters, parts, function, here);
}

/// The first step of full initialisations; `function` is the one that the kernel calls.
inline void configure_formats(std::uint32_t source_a, std::uint32_t source_b, std::uint32_t output,
                              const char* function, Location here) {
    Processor& processor = current();
    compute_of(processor).configure(processor, source_a, source_b, output, function, here);
}

inline void reconfigure_format(FormatRegister target, std::uint32_t old_cb, std::uint32_t new_cb,
                               Location here) {
    Processor& processor = current();
    compute_of(processor).reconfigure(processor, target, old_cb, new_cb, here);
}

inline void init_sfpu_operation(SfpuOperation operation, const char* function, Location here,
                                std::initializer_list<std::uint32_t> parameters = {}) {
    Processor& processor = current();
    compute_of(processor).sfpu_init(processor, operation, function, parameters.begin(),
                                    static_cast<std::uint32_t>(parameters.size()), here);
}

inline void run_sfpu(SfpuOperation operation, const SfpuCall& call, Location here) {
    Processor& processor = current();
    compute_of(processor).sfpu(processor, operation, call, here);
}

inline SfpuCall sfpu_call(std::initializer_list<std::uint32_t> tiles,
                          std::initializer_list<std::uint32_t> parameters = {},
                          int vector_mode = ckernel::VectorMode::RC) {
    SfpuCall call;
    for (const std::uint32_t tile : tiles) {
        call.tiles[call.num_tiles++] = tile;
    }
    for (const std::uint32_t parameter : parameters) {
        call.parameters[call.num_parameters++] = parameter;
    }
    call.vector_mode = static_cast<std::uint32_t>(vector_mode);
    return call;
}

}  // namespace ttcodegen::device

// The first argument is the function of the API, the second the operation of the backend.
#define TTCODEGEN_SFPU_INIT(function, operation)                                                \
    ALWI void function(TTCODEGEN_HERE) {                                                        \
        ::ttcodegen::device::init_sfpu_operation(::ttcodegen::device::SfpuOperation::operation, \
                                                 #function, here);                              \
    }
#define TTCODEGEN_SFPU_RUN(operation, ...)                                       \
    ::ttcodegen::device::run_sfpu(::ttcodegen::device::SfpuOperation::operation, \
                                  ::ttcodegen::device::sfpu_call(__VA_ARGS__), here)
#define TTCODEGEN_SFPU_UNARY(function, operation)            \
    ALWI void function(std::uint32_t idst, TTCODEGEN_HERE) { \
        TTCODEGEN_SFPU_RUN(operation, {idst});               \
    }
#define TTCODEGEN_SFPU_UNARY_1(function, operation)                                \
    ALWI void function(std::uint32_t idst, std::uint32_t param0, TTCODEGEN_HERE) { \
        TTCODEGEN_SFPU_RUN(operation, {idst}, {param0});                           \
    }
#define TTCODEGEN_SFPU_UNARY_2(function, operation)                                    \
    ALWI void function(std::uint32_t idst, std::uint32_t param0, std::uint32_t param1, \
                       TTCODEGEN_HERE) {                                               \
        TTCODEGEN_SFPU_RUN(operation, {idst}, {param0, param1});                       \
    }
#define TTCODEGEN_SFPU_BINARY(function, operation)                                   \
    ALWI void function(std::uint32_t idst0, std::uint32_t idst1, std::uint32_t odst, \
                       TTCODEGEN_HERE) {                                             \
        TTCODEGEN_SFPU_RUN(operation, {idst0, idst1, odst});                         \
    }
#define TTCODEGEN_SFPU_BINARY_FORMAT(function, operation)                            \
    template <DataFormat data_format>                                                \
    ALWI void function(std::uint32_t idst0, std::uint32_t idst1, std::uint32_t odst, \
                       TTCODEGEN_HERE) {                                             \
        TTCODEGEN_SFPU_RUN(operation, {idst0, idst1, odst},                          \
                           {static_cast<std::uint32_t>(data_format)});               \
    }
/// A function of one tile and its initialisation, both named after the operation.
#define TTCODEGEN_SFPU_UNARY_PAIR(operation)              \
    TTCODEGEN_SFPU_INIT(operation##_tile_init, operation) \
    TTCODEGEN_SFPU_UNARY(operation##_tile, operation)
#define TTCODEGEN_SFPU_UNARY_PAIR_1(operation)            \
    TTCODEGEN_SFPU_INIT(operation##_tile_init, operation) \
    TTCODEGEN_SFPU_UNARY_1(operation##_tile, operation)
#define TTCODEGEN_SFPU_UNARY_PAIR_2(operation)            \
    TTCODEGEN_SFPU_INIT(operation##_tile_init, operation) \
    TTCODEGEN_SFPU_UNARY_2(operation##_tile, operation)
#define TTCODEGEN_SFPU_BINARY_PAIR(operation)             \
    TTCODEGEN_SFPU_INIT(operation##_tile_init, operation) \
    TTCODEGEN_SFPU_BINARY(operation##_tile, operation)
