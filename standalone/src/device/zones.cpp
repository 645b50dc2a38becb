#include "device/zones.hpp"

#include "device/run.hpp"

namespace ttcodegen::device {

void ZoneRecorder::begin(const char* name, std::uint32_t line, const Counters& counters) {
    if (zones_.size() == kMaxZones) {
        open_.push_back(kMaxZones);
        ++lost_;
        return;
    }
    open_.push_back(zones_.size());
    zones_.push_back({name, line, counters, counters});
}

void ZoneRecorder::end(const Counters& counters) {
    const std::size_t index = open_.back();
    open_.pop_back();
    if (index < zones_.size()) {
        zones_[index].end = counters;
    }
}

void begin_zone(Processor& processor, const char* name, Location here) {
    ProcessorState::of(processor).zones.begin(name, here.line(), processor.counters);
}

void end_zone(Processor& processor) { ProcessorState::of(processor).zones.end(processor.counters); }

}  // namespace ttcodegen::device
