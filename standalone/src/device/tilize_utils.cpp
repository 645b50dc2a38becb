#include "tt-metalium/tilize_utils.hpp"

#include "core/describe.hpp"
#include "tt-metalium/bfloat16.hpp"
#include "tt-metalium/constants.hpp"

namespace {

/// The offset of an element of a matrix in each of the layouts.
class TilePlaces {
  public:
    TilePlaces(std::uint32_t width, const PhysicalSize& tile, const PhysicalSize& face,
               bool transpose_within_face, bool transpose_of_faces)
        : width_(width),
          tile_(tile),
          face_(face),
          within_(transpose_within_face),
          of_faces_(transpose_of_faces) {}

    std::size_t place(TensorLayoutType layout, std::size_t row, std::size_t column) const {
        if (layout == TensorLayoutType::LIN_ROW_MAJOR) {
            return row * width_ + column;
        }
        const std::size_t tile = row / tile_[0] * (width_ / tile_[1]) + column / tile_[1];
        const std::size_t first = tile * tile_[0] * tile_[1];
        row %= tile_[0];
        column %= tile_[1];
        if (layout == TensorLayoutType::TILED_SWIZZLED) {
            return first + row * tile_[1] + column;
        }
        return first + face_place(row, column);
    }

  private:
    std::size_t face_place(std::size_t row, std::size_t column) const {
        const std::size_t across = tile_[1] / face_[1];
        const std::size_t down = tile_[0] / face_[0];
        const std::size_t face_row = row / face_[0];
        const std::size_t face_column = column / face_[1];
        const std::size_t face =
            of_faces_ ? face_column * down + face_row : face_row * across + face_column;
        row %= face_[0];
        column %= face_[1];
        const std::size_t element = within_ ? column * face_[0] + row : row * face_[1] + column;
        return face * face_[0] * face_[1] + element;
    }

    std::size_t width_;
    PhysicalSize tile_;
    PhysicalSize face_;
    bool within_;
    bool of_faces_;
};

constexpr PhysicalSize kTile{tt::constants::TILE_HEIGHT, tt::constants::TILE_WIDTH};
constexpr PhysicalSize kFace{tt::constants::FACE_HEIGHT, tt::constants::FACE_WIDTH};

}  // namespace

template <typename T>
std::vector<T> convert_layout(tt::stl::Span<const T> inp, const PhysicalSize& shape,
                              TensorLayoutType inL, TensorLayoutType outL,
                              std::optional<PhysicalSize> tile_shape,
                              std::optional<PhysicalSize> face_shape, bool transpose_within_face,
                              bool transpose_of_faces) {
    const PhysicalSize tile = tile_shape.value_or(kTile);
    const PhysicalSize face = face_shape.value_or(kFace);
    const auto [height, width] = shape;
    const std::size_t elements = std::size_t{height} * width;
    TT_FATAL(height % tile[0] == 0 && width % tile[1] == 0,
             "Tiles of {}x{} do not divide a matrix of {}x{}", tile[0], tile[1], height, width);
    TT_FATAL(elements != 0 && inp.size() % elements == 0, "{} elements are no matrices of {}x{}",
             inp.size(), height, width);
    const TilePlaces places(width, tile, face, transpose_within_face, transpose_of_faces);
    std::vector<T> result(inp.size());
    for (std::size_t first = 0; first < inp.size(); first += elements) {
        for (std::size_t row = 0; row < height; ++row) {
            for (std::size_t column = 0; column < width; ++column) {
                result[first + places.place(outL, row, column)] =
                    inp[first + places.place(inL, row, column)];
            }
        }
    }
    return result;
}

template <typename T>
std::vector<T> tilize_swizzled(const std::vector<T>& input, std::uint32_t m, std::uint32_t n) {
    return convert_layout<T>(input, PhysicalSize{m, n}, TensorLayoutType::LIN_ROW_MAJOR,
                             TensorLayoutType::TILED_SWIZZLED);
}

template <typename T>
std::vector<T> untilize_swizzled(const std::vector<T>& input, std::uint32_t m, std::uint32_t n) {
    return convert_layout<T>(input, PhysicalSize{m, n}, TensorLayoutType::TILED_SWIZZLED,
                             TensorLayoutType::LIN_ROW_MAJOR);
}

template <typename T>
std::vector<T> tilize_nfaces(const std::vector<T>& input, std::uint32_t m, std::uint32_t n) {
    return convert_layout<T>(input, PhysicalSize{m, n}, TensorLayoutType::LIN_ROW_MAJOR,
                             TensorLayoutType::TILED_NFACES);
}

template <typename T>
std::vector<T> untilize_nfaces(const std::vector<T>& input, std::uint32_t m, std::uint32_t n) {
    return convert_layout<T>(input, PhysicalSize{m, n}, TensorLayoutType::TILED_NFACES,
                             TensorLayoutType::LIN_ROW_MAJOR);
}

// The types for which the release has these functions.
#define TTCODEGEN_CONVERT(T)                                                             \
    template std::vector<T> convert_layout<T>(                                           \
        tt::stl::Span<const T>, const PhysicalSize&, TensorLayoutType, TensorLayoutType, \
        std::optional<PhysicalSize>, std::optional<PhysicalSize>, bool, bool);
#define TTCODEGEN_TILIZE(T)                                                                        \
    template std::vector<T> tilize_swizzled<T>(const std::vector<T>&, std::uint32_t,               \
                                               std::uint32_t);                                     \
    template std::vector<T> untilize_swizzled<T>(const std::vector<T>&, std::uint32_t,             \
                                                 std::uint32_t);                                   \
    template std::vector<T> tilize_nfaces<T>(const std::vector<T>&, std::uint32_t, std::uint32_t); \
    template std::vector<T> untilize_nfaces<T>(const std::vector<T>&, std::uint32_t, std::uint32_t);

TTCODEGEN_CONVERT(float)
TTCODEGEN_CONVERT(bfloat16)
TTCODEGEN_CONVERT(std::int32_t)
TTCODEGEN_CONVERT(std::uint32_t)
TTCODEGEN_CONVERT(std::uint16_t)
TTCODEGEN_CONVERT(std::uint8_t)
TTCODEGEN_TILIZE(float)
TTCODEGEN_TILIZE(bfloat16)
TTCODEGEN_TILIZE(std::uint32_t)
TTCODEGEN_TILIZE(std::uint16_t)
