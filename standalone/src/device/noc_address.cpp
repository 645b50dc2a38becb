#include "device/noc_address.hpp"

#include <utility>

#include "device/diagnostics.hpp"
#include "device/transfers.hpp"

namespace ttcodegen::device {

namespace {

constexpr std::uint64_t kNodeMask = (std::uint64_t{1} << kNocNodeBits) - 1;

CoreCoord node_at(std::uint64_t address, unsigned first_bit) {
    return {(address >> first_bit) & kNodeMask,
            (address >> (first_bit + kNocNodeBits)) & kNodeMask};
}

/// Returns whether the bytes are in one region of the core that allows this access.
bool is_in_region(const CoreState& core, std::uint32_t offset, std::uint32_t bytes, Access access) {
    for (const Region& region : core.regions) {
        if (offset >= region.begin && offset < region.end && bytes <= region.end - offset) {
            return access == Access::Read || region.kind != Region::Kind::Zeros;
        }
    }
    return false;
}

/// Offset in L1 of an address in a packet to a worker: kernels use offsets, or addresses on their
/// own core, which mean the same offset on another.
std::uint32_t l1_offset(Run& run, std::uint64_t local) {
    const auto arena = reinterpret_cast<std::uintptr_t>(run.memory().l1_arena().data());
    const std::size_t size = run.memory().l1_arena().size();
    return static_cast<std::uint32_t>(local >= arena && local - arena < size ? local % kL1Window
                                                                             : local);
}

void check_l1(Processor& processor, const CoreState* core, CoreCoord logical, std::uint32_t offset,
              std::uint32_t bytes, Access access, Location here) {
    const ProcessorState& state = ProcessorState::of(processor);
    const char* action = access == Access::Read ? "reads" : "writes";
    if (core == nullptr) {
        fail(processor, here,
             "%s L1 of core (x=%zu,y=%zu), on which the program has no kernel and no buffer",
             action, logical.x, logical.y);
    }
    if (!is_in_region(*core, offset, bytes, access)) {
        fail(
            processor, here,
            "%s %u bytes at %s of core (x=%zu,y=%zu): they are not within a circular buffer, an L1 "
            "buffer or the semaphores of that core",
            action, bytes, describe_l1(*core, state, offset).c_str(), logical.x, logical.y);
    }
}

NocTarget worker_target(Processor& processor, CoreCoord logical, std::uint64_t local,
                        std::uint32_t bytes, Access access, Location here) {
    Run& run = *ProcessorState::of(processor).run;
    const std::uint32_t worker = run.device().worker_index(logical);
    const std::uint32_t offset = l1_offset(run, local);
    CoreState* core = run.core(worker);
    check_l1(processor, core, logical, offset, bytes, access, here);
    return {core->l1 + offset, false, core, offset};
}

NocTarget dram_target(Processor& processor, std::uint32_t bank, std::uint64_t offset,
                      std::uint32_t bytes, Access access, Location here) {
    Run& run = *ProcessorState::of(processor).run;
    const auto end = run.device().dram().end_of(offset);
    if (!end || bytes > *end - offset) {
        fail(processor, here, "%s %u bytes at 0x%llx of DRAM bank %u: they are not within a buffer",
             access == Access::Read ? "reads" : "writes", bytes,
             static_cast<unsigned long long>(offset), bank);
    }
    return {run.memory().dram(bank) + offset, true, nullptr, static_cast<std::uint32_t>(offset)};
}

}  // namespace

NocTarget resolve(Processor& processor, std::uint64_t address, std::uint32_t bytes,
                  std::uint8_t noc, Access access, Location here) {
    const Architecture& architecture = ProcessorState::of(processor).run->architecture();
    if (noc > 1) {
        fail(processor, here, "there is no NoC %u: there are 0 and 1", noc);
    }
    const CoreCoord node = node_at(address, kNocAddressBits);
    std::uint64_t local = address & ((std::uint64_t{1} << kNocAddressBits) - 1);
    if (const auto worker = architecture.worker_from_noc(node)) {
        return worker_target(processor, *worker, local, bytes, access, here);
    }
    const std::uint64_t given = local;
    if (const auto bank = architecture.bank_from_noc(node, noc, local)) {
        return dram_target(processor, *bank, local, bytes, access, here);
    }
    fail(processor, here,
         "there is neither a worker core nor DRAM at NoC coordinates (%zu,%zu) of NoC %u (address "
         "0x%llx); worker cores begin at (%zu,%zu)",
         node.x, node.y, noc, static_cast<unsigned long long>(given),
         architecture.worker_noc_origin.x, architecture.worker_noc_origin.y);
}

std::vector<NocTarget> resolve_multicast(Processor& processor, std::uint64_t address,
                                         std::uint32_t bytes, std::uint8_t noc, Location here) {
    const Architecture& architecture = ProcessorState::of(processor).run->architecture();
    CoreCoord end = node_at(address, kNocAddressBits);
    CoreCoord start = node_at(address, kNocAddressBits + 2 * kNocNodeBits);
    // NoC 1 runs in the opposite direction, so start and end are exchanged.
    if (noc == 1) {
        std::swap(start, end);
    }
    if (end.x < start.x || end.y < start.y) {
        fail(
            processor, here,
            "multicasts to a rectangle whose start and end are the wrong way round for NoC %u: NoC "
            "0 takes the smaller coordinates first, NoC 1 the larger",
            noc);
    }
    const std::uint64_t local = address & ((std::uint64_t{1} << kNocAddressBits) - 1);
    std::vector<NocTarget> targets;
    for (std::size_t y = start.y; y <= end.y; ++y) {
        for (std::size_t x = start.x; x <= end.x; ++x) {
            if (const auto worker = architecture.worker_from_noc({x, y})) {
                targets.push_back(
                    worker_target(processor, *worker, local, bytes, Access::Write, here));
            }
        }
    }
    if (targets.empty()) {
        fail(processor, here,
             "multicasts to NoC coordinates (%zu,%zu) to (%zu,%zu), where no worker core is",
             start.x, start.y, end.x, end.y);
    }
    return targets;
}

std::uint32_t own_memory(Processor& processor, std::uint32_t address, std::uint32_t bytes,
                         Access access, Location here) {
    ProcessorState& state = ProcessorState::of(processor);
    const auto base = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(processor.l1));
    const std::uint32_t offset =
        address >= base && address - base < kL1Window ? address - base : address;
    check_l1(processor, state.core, state.core->logical, offset, bytes, access, here);
    return offset;
}

}  // namespace ttcodegen::device
