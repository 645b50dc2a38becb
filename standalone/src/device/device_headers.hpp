#pragma once

namespace ttcodegen::device {

/// A header of the kernel API, embedded when the backend is built.
struct DeviceHeader {
    const char* path;  ///< As kernels include it; null after the last.
    const char* text;
};

extern const DeviceHeader kDeviceHeaders[];

}  // namespace ttcodegen::device
