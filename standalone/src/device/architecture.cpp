#include "device/architecture.hpp"

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "tt_stl/assert.hpp"

namespace ttcodegen::device {

namespace {

constexpr std::uint32_t kGiB = std::uint32_t{1} << 30;

// soc_descriptors/wormhole_b0_80_arch.yaml: six channels of two banks, with the port that workers
// use. Ports have physical coordinates, which NoC 1 counts from the opposite corner of 10x12 nodes.
constexpr DramBank wormhole_bank(std::size_t x, std::size_t y, std::uint32_t channel,
                                 std::uint32_t half) {
    return {{{x, y}, {9 - x, 11 - y}}, channel, half * kGiB};
}
constexpr std::array kWormholeBanks{
    wormhole_bank(0, 11, 0, 0), wormhole_bank(0, 1, 0, 1), wormhole_bank(0, 5, 1, 0),
    wormhole_bank(0, 7, 1, 1),  wormhole_bank(5, 1, 2, 0), wormhole_bank(5, 11, 2, 1),
    wormhole_bank(5, 2, 3, 0),  wormhole_bank(5, 9, 3, 1), wormhole_bank(5, 8, 4, 0),
    wormhole_bank(5, 3, 4, 1),  wormhole_bank(5, 5, 5, 0), wormhole_bank(5, 7, 5, 1),
};

// Blackhole translates DRAM coordinates: columns 17 and 18, three ports per bank from row 12 on;
// soc_descriptors/blackhole_140_arch.yaml names the port for each NoC.
constexpr DramBank blackhole_bank(std::uint32_t channel, std::size_t port0, std::size_t port1) {
    const std::size_t x = channel < 4 ? 17 : 18;
    const std::size_t y = 12 + std::size_t{3} * (channel % 4);
    return {{{x, y + port0}, {x, y + port1}}, channel, 0};
}
constexpr std::array kBlackholeBanks{
    blackhole_bank(0, 2, 1), blackhole_bank(1, 0, 1), blackhole_bank(2, 0, 1),
    blackhole_bank(3, 0, 1), blackhole_bank(4, 2, 1), blackhole_bank(5, 2, 1),
    blackhole_bank(6, 2, 1), blackhole_bank(7, 2, 1),
};

constexpr Architecture kWormhole{
    .arch = tt::ARCH::WORMHOLE_B0,
    .name = "wormhole_b0",
    .worker_grid = {8, 8},
    .worker_noc_origin = {18, 18},
    .skipped_columns = {0, 0},
    .l1_size = 1464 * 1024,
    .zeros_base = 12928,
    .kernel_config_base = 33056,
    .l1_unreserved_base = 105824,
    .l1_alignment = 16,
    .dram_bank_size = kGiB,
    .dram_unreserved_base = 32,
    .dram_read_alignment = 32,
    .dram_alignment = 32,
    .num_circular_buffers = 32,
    .max_burst = 8192,
    .dram_banks = kWormholeBanks,
    .most_workers = {8, 10},
    .readers_of_bank = 1,
};

constexpr Architecture kBlackhole{
    .arch = tt::ARCH::BLACKHOLE,
    .name = "blackhole",
    .worker_grid = {11, 10},
    .worker_noc_origin = {1, 2},
    .skipped_columns = {8, 9},
    .l1_size = 1536 * 1024,
    .zeros_base = 13024,
    .kernel_config_base = 40448,
    .l1_unreserved_base = 111744,
    .l1_alignment = 16,
    .dram_bank_size = std::uint32_t{4177920} * 1024,
    .dram_unreserved_base = 64,
    .dram_read_alignment = 64,
    .dram_alignment = 64,
    .num_circular_buffers = 64,
    .max_burst = 16384,
    .dram_banks = kBlackholeBanks,
    .most_workers = {14, 10},
    .readers_of_bank = 3,
};

/// Parses and removes a leading number of a text.
std::size_t leading_number(std::string_view& text) {
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(error == std::errc() ? static_cast<std::size_t>(end - text.data()) : 0);
    return error == std::errc() ? number : 0;
}

/// The card that the project was compiled for. Each library of a project has a backend of its own,
/// so it belongs to the project and not to the process.
constinit const char* compiled_for = "wormhole_b0";

/// Removes a leading character of a text and returns whether it was there.
bool skip(std::string_view& text, char character) {
    const bool found = text.starts_with(character);
    text.remove_prefix(found ? 1 : 0);
    return found;
}

Architecture parsed(std::string_view description) {
    const auto refuse = [&] {
        TT_THROW(
            "TTCODEGEN_ARCH is '{}'; it can be wormhole_b0 or blackhole, and a grid of workers and "
            "the number of DRAM banks of the card, as in blackhole:11x10:8",
            description);
    };
    std::string_view rest = description;
    const std::string_view name = rest.substr(0, rest.find(':'));
    rest.remove_prefix(name.size());
    if (name != kWormhole.name && name != kBlackhole.name) {
        refuse();
    }
    Architecture card = name == kBlackhole.name ? kBlackhole : kWormhole;
    if (!skip(rest, ':')) {
        return card;
    }
    card.worker_grid.x = leading_number(rest);
    const bool has_rows = skip(rest, 'x');
    card.worker_grid.y = leading_number(rest);
    const CoreCoord grid = card.worker_grid;
    const CoreCoord most = card.most_workers;
    const std::size_t banks = skip(rest, ':') ? leading_number(rest) : card.dram_banks.size();
    if (!has_rows || !rest.empty() || grid.x == 0 || grid.x > most.x || grid.y == 0 ||
        grid.y > most.y || banks == 0 || banks > card.dram_banks.size()) {
        refuse();
    }
    card.dram_banks = card.dram_banks.first(banks);
    return card;
}

}  // namespace

CoreCoord Architecture::worker_to_noc(CoreCoord logical) const {
    std::size_t x = worker_noc_origin.x + logical.x;
    if (skipped_columns.x != 0 && x >= skipped_columns.x) {
        x += skipped_columns.y - skipped_columns.x + 1;
    }
    return {x, worker_noc_origin.y + logical.y};
}

std::optional<CoreCoord> Architecture::worker_from_noc(CoreCoord noc) const {
    std::size_t x = noc.x;
    if (skipped_columns.x != 0 && x >= skipped_columns.x) {
        if (x <= skipped_columns.y) {
            return std::nullopt;
        }
        x -= skipped_columns.y - skipped_columns.x + 1;
    }
    if (x < worker_noc_origin.x || noc.y < worker_noc_origin.y ||
        x - worker_noc_origin.x >= worker_grid.x || noc.y - worker_noc_origin.y >= worker_grid.y) {
        return std::nullopt;
    }
    return CoreCoord{x - worker_noc_origin.x, noc.y - worker_noc_origin.y};
}

std::optional<std::uint32_t> Architecture::bank_from_noc(CoreCoord noc, std::uint8_t noc_index,
                                                         std::uint64_t& offset) const {
    for (std::size_t port = 0; port < dram_banks.size(); ++port) {
        if (dram_banks[port].noc[noc_index] != noc) {
            continue;
        }
        // A port reaches its whole channel, so the address selects the bank.
        for (std::size_t bank = 0; bank < dram_banks.size(); ++bank) {
            const std::uint64_t start = dram_banks[bank].address_offset;
            if (dram_banks[bank].channel == dram_banks[port].channel && offset >= start &&
                offset - start < dram_bank_size) {
                offset -= start;
                return static_cast<std::uint32_t>(bank);
            }
        }
        return static_cast<std::uint32_t>(port);
    }
    return std::nullopt;
}

const Architecture& architecture(tt::ARCH arch) {
    switch (arch) {
        case tt::ARCH::WORMHOLE_B0:
            return kWormhole;
        case tt::ARCH::BLACKHOLE:
            return kBlackhole;
        default:
            TT_THROW("The CPU backend emulates wormhole_b0 and blackhole only");
    }
}

const Architecture& default_architecture() {
    static const Architecture described = [] {
        const char* text = std::getenv("TTCODEGEN_ARCH");
        return text == nullptr || *text == '\0' ? parsed(compiled_for) : parsed(text);
    }();
    return described;
}

}  // namespace ttcodegen::device

void ttcodegen_emulate_card(const char* card) { ttcodegen::device::compiled_for = card; }
