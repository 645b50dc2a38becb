// The destination register: ownership by math and packing, and the state of its tiles.

#include <algorithm>
#include <string>
#include <string_view>

#include "device/compute/operands.hpp"

namespace ttcodegen::device::compute {

namespace {

unsigned line_of(const Location& location) { return static_cast<unsigned>(location.line()); }

std::uint32_t capacity_of(const ComputeSettings& settings) {
    const std::uint32_t tiles =
        settings.dst_full_sync_en ? kDestinationTiles : kDestinationTiles / 2;
    return settings.fp32_dest_acc_en ? tiles / 2 : tiles;
}

/// The initialisation of the same operation that leaves DST and the data formats unchanged. Source
/// of full and short ones: tt_metal/hw/inc/api/compute of 0.70.1.
std::string short_initialisation(std::string_view full) {
    struct Row {
        std::string_view full;
        const char* instead;
    };
    constexpr Row kRows[] = {
        {"mm_init", "mm_init_short"},
        {"mm_block_init", "mm_block_init_short"},
        {"transpose_wh_init", "transpose_wh_init_short"},
        {"unary_op_init_common", "copy_tile_init"},
        {"binary_op_init_common", "add_tiles_init, sub_tiles_init or mul_tiles_init"},
        {"init_bcast", "the short form, such as add_bcast_rows_init_short"},
        {"unary_bcast_init", "llk_unpack_A_init and llk_math_eltwise_unary_datacopy_init"},
    };
    const auto* found = std::find_if(std::begin(kRows), std::end(kRows),
                                     [&](const Row& row) { return row.full == full; });
    return found != std::end(kRows) ? found->instead : "";
}

void forget(DestinationSection& section) {
    std::fill(std::begin(section.notes), std::end(section.notes), TileNote{});
}

}  // namespace

void Destination::begin() {
    for (DestinationSection& section : sections_) {
        forget(section);
    }
    math_ = pack_ = committed_ = 0;
    acquired_ = waited_ = false;
}

void Destination::end(Processor& processor) {
    if (acquired_) {
        refuse(processor, acquired_at_,
               "the kernel ends with DST acquired: tile_regs_commit is missing");
    }
    if (waited_) {
        refuse(processor, waited_at_,
               "the kernel ends before packing gives DST back: tile_regs_release is missing");
    }
    if (committed_ != 0) {
        refuse(processor, acquired_at_,
               "the kernel ends with results in DST that nothing packs: tile_regs_wait and "
               "tile_regs_release are missing");
    }
}

void Destination::check_idle(Processor& processor, const char* function, Location here) const {
    if (!in_use()) {
        return;
    }
    const Location& since = waited_ ? waited_at_ : acquired_at_;
    const std::string instead = short_initialisation(function);
    refuse(
        processor, here,
        "%s is a full initialisation, which resets DST, its semaphores and all data formats, but "
        "DST is in use since line %u: call it before tile_regs_acquire or after "
        "tile_regs_release%s%s",
        function, line_of(since), instead.empty() ? "" : "; within, call ", instead.c_str());
}

void Destination::acquire(Processor& processor, Location here) {
    if (acquired_) {
        refuse(processor, here,
               "tile_regs_acquire: DST is acquired since line %u; tile_regs_commit is missing",
               line_of(acquired_at_));
    }
    if (committed_ == kSections) {
        refuse(processor, here,
               "tile_regs_acquire: %u sections of DST are committed and none is released; "
               "tile_regs_wait and tile_regs_release are missing",
               committed_);
    }
    acquired_ = true;
    acquired_at_ = here;
    addressed_ = 0;
}

void Destination::commit(Processor& processor, Location here) {
    if (!acquired_) {
        refuse(processor, here, "tile_regs_commit without tile_regs_acquire before it");
    }
    acquired_ = false;
    ++committed_;
    math_ = (math_ + 1) % kSections;
}

void Destination::wait(Processor& processor, Location here) {
    if (waited_) {
        refuse(processor, here,
               "tile_regs_wait: packing waited for DST at line %u already; tile_regs_release is "
               "missing",
               line_of(waited_at_));
    }
    if (committed_ == 0 && !acquired_) {
        refuse(processor, here,
               "tile_regs_wait: there is nothing to wait for; tile_regs_acquire and "
               "tile_regs_commit come first");
    }
    waited_ = true;
    waited_at_ = here;
}

void Destination::release(Processor& processor, Location here) {
    if (!waited_) {
        refuse(processor, here, "tile_regs_release without tile_regs_wait before it");
    }
    if (committed_ == 0) {
        refuse(processor, here,
               "tile_regs_release: math has DST since line %u; tile_regs_commit is missing",
               line_of(acquired_at_));
    }
    forget(sections_[pack_]);
    pack_ = (pack_ + 1) % kSections;
    --committed_;
    waited_ = false;
}

void Destination::check_index(Processor& processor, std::uint32_t index, const char* function,
                              Location here) const {
    const ComputeSettings& settings = *processor.compute_settings;
    const std::uint32_t capacity = capacity_of(settings);
    if (index >= capacity) {
        refuse(processor, here,
               "%s: there is no tile %u in DST: it has %u tiles with fp32_dest_acc_en = %s and "
               "dst_full_sync_en = %s",
               function, index, capacity, settings.fp32_dest_acc_en ? "true" : "false",
               settings.dst_full_sync_en ? "true" : "false");
    }
}

Tile& Destination::acquired_tile(Processor& processor, std::uint32_t index, const char* function,
                                 Location here) {
    if (!acquired_) {
        refuse(processor, here, "%s: DST is not acquired; tile_regs_acquire is missing%s", function,
               committed_ != 0 ? ", or math comes after tile_regs_commit" : "");
    }
    check_index(processor, index, function, here);
    return sections_[math_].tiles[index];
}

Tile& Destination::math_tile(Processor& processor, std::uint32_t index, const char* function,
                             Location here) {
    Tile& tile = acquired_tile(processor, index, function, here);
    addressed_ = kUnknown;
    if (sections_[math_].notes[index].packed_early) {
        refuse(processor, here,
               "%s: tile %u of DST is packed already; on the device packing starts at "
               "tile_regs_commit, and would see what math does here",
               function, index);
    }
    return tile;
}

Tile& Destination::written_math_tile(Processor& processor, std::uint32_t index,
                                     const char* function, Location here) {
    Tile& tile = acquired_tile(processor, index, function, here);
    if (!sections_[math_].notes[index].written) {
        refuse(processor, here,
               "%s: tile %u of DST holds nothing: nothing was written to it since "
               "tile_regs_acquire at line %u",
               function, index, line_of(acquired_at_));
    }
    return tile;
}

const Tile& Destination::packed_tile(Processor& processor, std::uint32_t index,
                                     const char* function, Location here) {
    if (!waited_) {
        refuse(processor, here, "%s: packing did not wait for math; tile_regs_wait is missing",
               function);
    }
    check_index(processor, index, function, here);
    if (!sections_[pack_].notes[index].written) {
        refuse(processor, here,
               "%s: tile %u of DST holds nothing: math wrote nothing to it since tile_regs_acquire",
               function, index);
    }
    sections_[pack_].notes[index].packed_early = committed_ == 0;
    return sections_[pack_].tiles[index];
}

void Destination::finish(Processor& processor, std::uint32_t index, Domain domain) {
    TileNote& note = sections_[math_].notes[index];
    note.written = true;
    note.domain = domain;
    if (domain == Domain::Float && !processor.compute_settings->fp32_dest_acc_en) {
        round_to_bfloat16(sections_[math_].tiles[index].floats(), kTileElements);
    }
}

}  // namespace ttcodegen::device::compute
