#pragma once

// The implementation of ComputeFunctions, by engine.

#include "device/compute/operands.hpp"

namespace ttcodegen::device::compute {

// matrix_engine.cpp
void prepare(Processor& processor, const FpuMode& mode, const FpuParameters& parameters,
             FpuParts parts, const char* function, Location here);
/// Refuses another operation while packing is still masked for a reduction.
void check_mask_gone(Processor& processor, const char* function, Location here);
/// Refuses an operation that the matrix engine or the unpackers are not set up for.
void check_prepared(Processor& processor, const FpuMode& mode, const char* function, Location here);
void copy(Processor& processor, const FpuMode& mode, std::uint32_t cb, std::uint32_t tile,
          std::uint32_t destination, Location here);
void address(Processor& processor, std::uint32_t destination, Location here);
void transpose_destination(Processor& processor, std::uint32_t destination, Location here);
void binary(Processor& processor, const FpuMode& mode, std::uint32_t cb_a, std::uint32_t cb_b,
            std::uint32_t tile_a, std::uint32_t tile_b, std::uint32_t destination,
            std::uint32_t row, Location here);
void binary_reuse(Processor& processor, const FpuMode& mode, std::uint32_t cb, std::uint32_t tile,
                  std::uint32_t destination, Location here);

// products.cpp
void matmul(Processor& processor, std::uint32_t cb_0, std::uint32_t cb_1, std::uint32_t tile_0,
            std::uint32_t tile_1, std::uint32_t destination, std::uint32_t columns,
            std::uint32_t rows, std::uint32_t inner, Location here);
void reduce(Processor& processor, const FpuMode& mode, std::uint32_t cb, std::uint32_t cb_scaler,
            std::uint32_t tile, std::uint32_t tile_scaler, std::uint32_t destination,
            Location here);
void reduce_block_max_row(Processor& processor, std::uint32_t cb, std::uint32_t cb_scaler,
                          std::uint32_t tile, std::uint32_t destination, Location here);

// vector_engine.cpp
void sfpu_init(Processor& processor, SfpuOperation operation, const char* function,
               const std::uint32_t* parameters, std::uint32_t num_parameters, Location here);
void sfpu(Processor& processor, SfpuOperation operation, const SfpuCall& call, Location here);

// packer.cpp
void reserve_back(Processor& processor, std::uint32_t cb, std::uint32_t pages, Location here);
void push_back(Processor& processor, std::uint32_t cb, std::uint32_t pages, Location here);
/// Waits for the pages that the kernel reserved since it last packed to the buffer.
void finish_reserve(Processor& processor, std::uint32_t cb);
void pack(Processor& processor, std::uint32_t destination, std::uint32_t cb, bool out_of_order,
          std::uint32_t tile, Location here);
/// Packs a tile to page `page` after the write pointer.
void pack_to_page(Processor& processor, const Tile& tile, Domain domain, std::uint32_t cb,
                  std::uint32_t page, const char* function, Location here);
void pack_rows(Processor& processor, std::uint32_t destination, std::uint32_t cb,
               std::uint32_t page, Location here);
/// Refuses words of one domain in a buffer of the other.
void check_domain(Processor& processor, Domain domain, std::uint32_t cb, const char* function,
                  Location here);

// layouts.cpp
void pack_untilize(Processor& processor, std::uint32_t cb, const PackRows& rows, Location here);
void tilize(Processor& processor, std::uint32_t cb, std::uint32_t columns, std::uint32_t output,
            std::uint32_t input_tile, std::uint32_t output_tile, Location here);
void untilize(Processor& processor, std::uint32_t cb, std::uint32_t columns, std::uint32_t output,
              Location here);

}  // namespace ttcodegen::device::compute
