/// The macros of the device profiler that name zones of a kernel. There is no clock: the report of
/// the emulated device has the counters at the begin and end of each zone.
#pragma once

#include <cstdint>

#include "ttcodegen/device/processor.hpp"

namespace ttcodegen::device {

/// A zone that ends with its enclosing scope.
class Zone {
  public:
    explicit Zone(const char* name, Location here = Location::current()) {
        Processor& processor = current();
        processor.functions->begin_zone(processor, name, here);
    }
    Zone(const Zone&) = delete;
    Zone& operator=(const Zone&) = delete;
    ~Zone() {
        Processor& processor = current();
        processor.functions->end_zone(processor);
    }
};

}  // namespace ttcodegen::device

// As in the release, a scope has one zone, which declares `zone`.
#define DeviceZoneScopedN(name) const ::ttcodegen::device::Zone zone(name)
#define DeviceTimestampedData(name, data)
#define DeviceRecordEvent(event_id)
