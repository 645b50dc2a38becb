#include "support/drawing.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <string_view>
#include <vector>

namespace support {

namespace {

constexpr std::uint64_t piece = 1 << 16;

double next(RandomNumbers& random, const Drawing& drawing) {
    switch (drawing.distribution) {
        case Distribution::uniform:
            return drawing.low + (drawing.high - drawing.low) * random.unit();
        case Distribution::normal: {
            // Box-Muller transform; 1 - unit() is never zero.
            const double radius = std::sqrt(-2 * std::log(1 - random.unit()));
            return drawing.low +
                   drawing.high * radius * std::cos(2 * std::numbers::pi * random.unit());
        }
        case Distribution::integer:
            return std::floor(drawing.low + (drawing.high - drawing.low + 1) * random.unit());
        case Distribution::boolean:
            return static_cast<double>(random.bits() >> 63);
    }
    return 0;
}

/// FNV-1a.
std::uint64_t hash(std::string_view text) {
    std::uint64_t value = 0xcbf29ce484222325;
    for (const char character : text) {
        value = (value ^ static_cast<unsigned char>(character)) * 0x100000001b3;
    }
    return value;
}

}  // namespace

Array draw(const TensorDescription& tensor, std::uint64_t seed) {
    const ElementType type = element_type(tensor.data_type);
    const auto shape = tensor.shape();
    Array array{type, {shape.begin(), shape.end()}, {}};
    const std::uint64_t count = element_count(shape);
    array.bytes.reserve(count * element_size(type));
    RandomNumbers random(seed ^ hash(tensor.name));
    std::vector<double> values;
    // In chunks: as doubles, a large weight would need several times its memory.
    for (std::uint64_t done = 0; done < count; done += values.size()) {
        values.resize(std::min(count - done, piece));
        for (double& value : values) {
            value = next(random, tensor.drawing);
        }
        const std::vector<std::byte> bytes = stored(values, type);
        array.bytes.insert(array.bytes.end(), bytes.begin(), bytes.end());
    }
    return array;
}

void draw_missing_weights(Model& model, std::size_t function, std::uint64_t seed) {
    const auto weights = model.function(function).weights;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (!model.has_weight(function, i)) {
            model.set_weight(function, i, draw(weights[i], seed).view());
        }
    }
}

}  // namespace support
