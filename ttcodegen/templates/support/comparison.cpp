#include "support/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <stdexcept>

namespace support {

namespace {

/// The difference of an array from the expected one.
struct Comparison {
    /// Pearson correlation of the finite elements; 1 where it is undefined: one element, or all
    /// expected elements equal.
    double correlation = 1;
    double max_error = 0;
    bool passed = false;
};

/// Sums over pairs of finite elements.
struct Moments {
    double count = 0;
    double mean_x = 0;
    double mean_y = 0;
    double xx = 0;
    double yy = 0;
    double xy = 0;

    /// Welford's update: no cancellation where the mean is large against the deviation.
    void add(double x, double y) {
        count += 1;
        const double dx = x - mean_x;
        const double dy = y - mean_y;
        mean_x += dx / count;
        mean_y += dy / count;
        xx += dx * (x - mean_x);
        yy += dy * (y - mean_y);
        xy += dx * (y - mean_y);
    }
};

Comparison compare(const ArrayView& actual, const ArrayView& expected, const Tolerance& tolerance) {
    if (!std::ranges::equal(actual.shape, expected.shape)) {
        throw std::runtime_error("the shape " + shape_text(actual.shape) + " is not the expected " +
                                 shape_text(expected.shape));
    }
    const std::uint64_t count = element_count(actual.shape);
    Moments moments;
    bool same_specials = true;
    double least = std::numeric_limits<double>::infinity();
    double greatest = -least;
    Comparison result;
    for (std::uint64_t i = 0; i < count; ++i) {
        const double x = element_at(actual.type, actual.data, i);
        const double y = element_at(expected.type, expected.data, i);
        if (std::isfinite(x) && std::isfinite(y)) {
            moments.add(x, y);
            least = std::min(least, y);
            greatest = std::max(greatest, y);
            result.max_error = std::max(result.max_error, std::fabs(x - y));
        } else {
            same_specials = same_specials && (x == y || (std::isnan(x) && std::isnan(y)));
        }
    }
    const bool varied = moments.count > 1 && greatest > least;
    if (varied) {
        const double deviations = std::sqrt(moments.xx) * std::sqrt(moments.yy);
        result.correlation = deviations > 0 ? std::min(1.0, moments.xy / deviations) : 0;
    }
    // For constant values the error is relative to the value itself.
    double range = varied ? greatest - least : std::fabs(greatest);
    if (moments.count == 0 || range == 0) {
        range = 1;
    }
    result.passed = same_specials && result.max_error <= tolerance.error * range &&
                    (result.max_error == 0 || result.correlation >= tolerance.correlation);
    return result;
}

}  // namespace

bool print_comparison(const ArrayView& actual, const ArrayView& expected,
                      const Tolerance& tolerance) {
    const Comparison comparison = compare(actual, expected, tolerance);
    std::printf(
        "    %s: correlation %.6f (at least %g), greatest error %.3g (at most %g of the range)\n",
        comparison.passed ? "equals the golden output" : "MISMATCH", comparison.correlation,
        tolerance.correlation, comparison.max_error, tolerance.error);
    return comparison.passed;
}

}  // namespace support
