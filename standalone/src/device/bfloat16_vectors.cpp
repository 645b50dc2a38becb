#include <bit>
#include <functional>
#include <random>

#include "tt-metalium/bfloat16.hpp"

std::uint32_t pack_two_bfloat16_into_uint32(std::pair<bfloat16, bfloat16> two_bfloats) {
    const auto low = std::bit_cast<std::uint16_t>(two_bfloats.first);
    const auto high = std::bit_cast<std::uint16_t>(two_bfloats.second);
    return std::uint32_t{low} | std::uint32_t{high} << 16;
}

std::vector<bfloat16> create_random_vector_of_bfloat16_native(std::size_t num_bytes,
                                                              float rand_max_float, int seed,
                                                              float offset) {
    std::mt19937 generator(static_cast<std::mt19937::result_type>(seed));
    std::uniform_real_distribution<float> draw(0, rand_max_float);
    std::vector<bfloat16> values(num_bytes / sizeof(bfloat16));
    for (bfloat16& value : values) {
        value = bfloat16(draw(generator) + offset);
    }
    return values;
}

std::vector<std::uint32_t> create_random_vector_of_bfloat16(std::size_t num_bytes,
                                                            int rand_max_float, int seed,
                                                            float offset) {
    return pack_bfloat16_vec_into_uint32_vec(create_random_vector_of_bfloat16_native(
        num_bytes, static_cast<float>(rand_max_float), seed, offset));
}

std::vector<std::uint32_t> create_constant_vector_of_bfloat16(std::size_t num_bytes, float value) {
    return std::vector<std::uint32_t>(
        num_bytes / sizeof(std::uint32_t),
        pack_two_bfloat16_into_uint32({bfloat16(value), bfloat16(value)}));
}

std::vector<std::uint32_t> pack_bfloat16_vec_into_uint32_vec(const std::vector<bfloat16>& data) {
    std::vector<std::uint32_t> packed;
    for (std::size_t i = 0; i + 1 < data.size(); i += 2) {
        packed.push_back(pack_two_bfloat16_into_uint32({data[i], data[i + 1]}));
    }
    return packed;
}

bfloat16 bfloat16_identity_transform(const bfloat16& input) { return input; }

std::vector<bfloat16> unpack_uint32_vec_into_bfloat16_vec(
    const std::vector<std::uint32_t>& data,
    const std::function<bfloat16(const bfloat16&)>& transform) {
    std::vector<bfloat16> unpacked;
    for (const std::uint32_t pair : data) {
        unpacked.push_back(transform(std::bit_cast<bfloat16>(static_cast<std::uint16_t>(pair))));
        unpacked.push_back(
            transform(std::bit_cast<bfloat16>(static_cast<std::uint16_t>(pair >> 16))));
    }
    return unpacked;
}
