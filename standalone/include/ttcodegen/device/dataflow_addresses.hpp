/// NoC addresses, and address generators of interleaved buffers.
#pragma once

#include <type_traits>

#include "ttcodegen/device/dataflow_types.hpp"

#define NOC_XY_ADDR(x, y, addr)                                                         \
    ((static_cast<std::uint64_t>(y) << (NOC_ADDR_LOCAL_BITS + NOC_ADDR_NODE_ID_BITS)) | \
     (static_cast<std::uint64_t>(x) << NOC_ADDR_LOCAL_BITS) | static_cast<std::uint64_t>(addr))
#define NOC_MULTICAST_ADDR(x_start, y_start, x_end, y_end, addr)                                  \
    ((static_cast<std::uint64_t>(x_start) << (NOC_ADDR_LOCAL_BITS + 2 * NOC_ADDR_NODE_ID_BITS)) | \
     (static_cast<std::uint64_t>(y_start) << (NOC_ADDR_LOCAL_BITS + 3 * NOC_ADDR_NODE_ID_BITS)) | \
     NOC_XY_ADDR(x_end, y_end, addr))
#define NOC_UNICAST_ADDR_X(addr) ((addr) >> NOC_ADDR_LOCAL_BITS & 0x3f)
#define NOC_UNICAST_ADDR_Y(addr) ((addr) >> (NOC_ADDR_LOCAL_BITS + NOC_ADDR_NODE_ID_BITS) & 0x3f)
#define NOC_LOCAL_ADDR_OFFSET(addr) ((addr) & ((std::uint64_t{1} << NOC_ADDR_LOCAL_BITS) - 1))

FORCE_INLINE std::uint64_t get_noc_addr(std::uint32_t noc_x, std::uint32_t noc_y,
                                        std::uint32_t addr, std::uint8_t /*noc*/ = noc_index) {
    return NOC_XY_ADDR(noc_x, noc_y, addr);
}

/// An address of the core itself.
FORCE_INLINE std::uint64_t get_noc_addr(std::uint32_t addr, std::uint8_t noc = noc_index) {
    return NOC_XY_ADDR(my_x[noc], my_y[noc], addr);
}

/// On NoC 0 the first corner has the smaller coordinates, on NoC 1 the larger ones.
FORCE_INLINE std::uint64_t get_noc_multicast_addr(std::uint32_t noc_x_start,
                                                  std::uint32_t noc_y_start,
                                                  std::uint32_t noc_x_end, std::uint32_t noc_y_end,
                                                  std::uint32_t addr,
                                                  std::uint8_t /*noc*/ = noc_index) {
    return NOC_MULTICAST_ADDR(noc_x_start, noc_y_start, noc_x_end, noc_y_end, addr);
}

FORCE_INLINE std::uint64_t get_noc_addr_helper(std::uint32_t noc_xy, std::uint32_t addr) {
    return (std::uint64_t{noc_xy} << NOC_ADDR_LOCAL_BITS) | addr;
}

/// An offset in a bank as a NoC address.
template <bool DRAM>
std::uint64_t get_noc_addr_from_bank_id(std::uint32_t bank_id, std::uint32_t bank_address_offset,
                                        std::uint8_t noc = noc_index, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    return processor.functions->bank_address(processor, DRAM, bank_id, bank_address_offset, noc,
                                             here);
}

namespace interleaved_addr_gen {

template <bool DRAM>
constexpr std::uint32_t num_banks() {
    return DRAM ? NUM_DRAM_BANKS : NUM_L1_BANKS;
}

template <bool DRAM>
constexpr std::uint32_t get_allocator_alignment() {
    return DRAM ? DRAM_ALIGNMENT : L1_ALIGNMENT;
}

template <bool DRAM>
constexpr std::uint32_t get_bank_offset_index(std::uint32_t id) {
    return id / num_banks<DRAM>();
}

template <bool DRAM>
constexpr std::uint32_t get_bank_index(std::uint32_t id, std::uint32_t bank_offset_index) {
    return id - bank_offset_index * num_banks<DRAM>();
}

/// Pages are interleaved over the banks.
template <bool DRAM>
std::uint64_t page_address(std::uint32_t id, std::uint32_t aligned_page_size,
                           std::uint32_t bank_base_address, std::uint32_t offset, std::uint8_t noc,
                           ttcodegen::device::Location here) {
    const std::uint32_t row = get_bank_offset_index<DRAM>(id);
    return get_noc_addr_from_bank_id<DRAM>(get_bank_index<DRAM>(id, row),
                                           row * aligned_page_size + bank_base_address + offset,
                                           noc, here);
}

}  // namespace interleaved_addr_gen

inline std::uint64_t get_dram_noc_addr(std::uint32_t id, std::uint32_t page_size,
                                       std::uint32_t bank_base_address, std::uint32_t offset = 0,
                                       std::uint8_t noc = noc_index, TTCODEGEN_HERE) {
    return interleaved_addr_gen::page_address<true>(id, align_power_of_2(page_size, DRAM_ALIGNMENT),
                                                    bank_base_address, offset, noc, here);
}

inline std::uint64_t get_l1_noc_addr(std::uint32_t id, std::uint32_t page_size,
                                     std::uint32_t bank_base_address, std::uint32_t offset = 0,
                                     std::uint8_t noc = noc_index, TTCODEGEN_HERE) {
    return interleaved_addr_gen::page_address<false>(id, align_power_of_2(page_size, L1_ALIGNMENT),
                                                     bank_base_address, offset, noc, here);
}

template <bool DRAM>
struct InterleavedAddrGen {
    static constexpr bool is_dram = DRAM;
    std::uint32_t bank_base_address;
    const std::uint32_t page_size;  ///< Bytes.
    const std::uint32_t aligned_page_size =
        align_power_of_2(page_size, interleaved_addr_gen::get_allocator_alignment<DRAM>());

    std::uint64_t get_noc_addr(std::uint32_t id, std::uint32_t offset = 0,
                               std::uint8_t noc = noc_index, TTCODEGEN_HERE) const {
        return interleaved_addr_gen::page_address<DRAM>(id, aligned_page_size, bank_base_address,
                                                        offset, noc, here);
    }
};

template <bool DRAM>
struct InterleavedPow2AddrGen {
    static constexpr bool is_dram = DRAM;
    const std::uint32_t bank_base_address;
    const std::uint32_t log_base_2_of_page_size;

    std::uint64_t get_noc_addr(std::uint32_t id, std::uint32_t offset = 0,
                               std::uint8_t noc = noc_index, TTCODEGEN_HERE) const {
        const std::uint32_t size = std::uint32_t{1} << log_base_2_of_page_size;
        constexpr std::uint32_t kAlignment = interleaved_addr_gen::get_allocator_alignment<DRAM>();
        return interleaved_addr_gen::page_address<DRAM>(id, size > kAlignment ? size : kAlignment,
                                                        bank_base_address, offset, noc, here);
    }
};

template <bool DRAM>
struct InterleavedPow2AddrGenFast : InterleavedPow2AddrGen<DRAM> {};

/// The size in bytes of `index` tiles of `tile_hw` elements in a format.
template <std::uint32_t tile_hw = 1024>
constexpr std::uint32_t MUL_WITH_TILE_SIZE(std::uint32_t format, std::uint32_t index) {
    constexpr std::uint32_t kExponents = tile_hw / 16 < 16 ? 16 : tile_hw / 16;
    switch (static_cast<DataFormat>(format & 0x1F)) {
        case DataFormat::UInt8:
            return index * tile_hw;
        case DataFormat::UInt16:
        case DataFormat::Float16:
        case DataFormat::Float16_b:
            return index * tile_hw * 2;
        case DataFormat::Int32:
        case DataFormat::UInt32:
        case DataFormat::Float32:
            return index * tile_hw * 4;
        case DataFormat::Bfp2:
        case DataFormat::Bfp2_b:
            return index * (tile_hw / 4 + kExponents);
        case DataFormat::Bfp4:
        case DataFormat::Bfp4_b:
            return index * (tile_hw / 2 + kExponents);
        default:
            return index * (tile_hw + kExponents);
    }
}

template <bool DRAM, std::uint32_t tile_hw = 1024>
struct InterleavedAddrGenFast {
    static constexpr bool is_dram = DRAM;
    std::uint32_t bank_base_address;
    std::uint32_t page_size;  ///< Bytes of a tile.
    DataFormat data_format;

    std::uint64_t get_noc_addr(std::uint32_t id, std::uint32_t offset = 0,
                               std::uint8_t noc = noc_index, TTCODEGEN_HERE) const {
        return interleaved_addr_gen::page_address<DRAM>(
            id, MUL_WITH_TILE_SIZE<tile_hw>(static_cast<std::uint32_t>(data_format), 1),
            bank_base_address, offset, noc, here);
    }
};

template <bool DRAM, bool is_size_pow2>
auto get_interleaved_addr_gen(std::uint32_t base_addr, std::uint32_t page_size,
                              std::uint32_t log2_page_size) {
    if constexpr (is_size_pow2) {
        return InterleavedPow2AddrGen<DRAM>{.bank_base_address = base_addr,
                                            .log_base_2_of_page_size = log2_page_size};
    } else {
        return InterleavedAddrGen<DRAM>{.bank_base_address = base_addr, .page_size = page_size};
    }
}

template <bool DRAM, bool is_size_pow2>
auto get_interleaved_addr_gen(std::uint32_t base_addr, std::uint32_t size) {
    return get_interleaved_addr_gen<DRAM, is_size_pow2>(base_addr, size, size);
}

namespace ttcodegen::device {

template <typename T>
concept AddressGenerator = requires(const T& generator) { generator.get_noc_addr(0U, 0U); };

/// The size of a page in bytes, aligned if the generator specifies an alignment.
template <AddressGenerator T>
std::uint32_t page_bytes(const T& generator) {
    if constexpr (requires { generator.get_aligned_page_size(); }) {
        return generator.get_aligned_page_size();
    } else if constexpr (requires { generator.page_size; }) {
        return generator.page_size;
    } else {
        return std::uint32_t{1} << generator.log_base_2_of_page_size;
    }
}

}  // namespace ttcodegen::device

template <ttcodegen::device::AddressGenerator AddrGen>
std::uint64_t get_noc_addr(std::uint32_t id, const AddrGen& addrgen, std::uint32_t offset = 0,
                           std::uint8_t noc = noc_index, TTCODEGEN_HERE) {
    return addrgen.get_noc_addr(id, offset, noc, here);
}
