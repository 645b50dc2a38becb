#include "device/compute/operands.hpp"

#include "device/diagnostics.hpp"
#include "device/run.hpp"

namespace ttcodegen::device::compute {

namespace {

const char* register_name(FormatRegister target) {
    switch (target) {
        case FormatRegister::SourceA:
            return "source A";
        case FormatRegister::SourceB:
            return "source B";
        case FormatRegister::Pack:
            return "packing";
    }
    return "";
}

const char* reconfigure_name(FormatRegister target) {
    switch (target) {
        case FormatRegister::SourceA:
            return "reconfig_data_format_srca";
        case FormatRegister::SourceB:
            return "reconfig_data_format_srcb";
        case FormatRegister::Pack:
            return "pack_reconfig_data_format";
    }
    return "";
}

const std::byte* read_tile(Processor& processor, std::uint32_t cb, std::uint32_t tile,
                           DataFormat format, Location here) {
    ++processor.counters.unpacked_tiles;
    return processor.functions->front_page(processor, cb, tile,
                                           static_cast<std::uint32_t>(tile_bytes(format)), here);
}

}  // namespace

std::string buffer_name(Processor& processor, std::uint32_t cb) {
    return describe_circular_buffer(ProcessorState::of(processor), cb);
}

const CircularBuffer& tile_buffer(Processor& processor, std::uint32_t cb, Location here) {
    if (cb >= processor.num_circular_buffers || processor.circular_buffers[cb].pages == nullptr) {
        refuse(processor, here, "%s was not created on this core",
               buffer_name(processor, cb).c_str());
    }
    const CircularBuffer& buffer = processor.circular_buffers[cb];
    if (buffer.tile_height != kTileWidth || buffer.tile_width != kTileWidth) {
        refuse(processor, here,
               "%s has tiles of %u x %u elements; the emulated device computes on "
               "32 x 32 only",
               buffer_name(processor, cb).c_str(), unsigned{buffer.tile_height},
               unsigned{buffer.tile_width});
    }
    if (!is_supported(format_of(buffer))) {
        refuse(processor, here, "%s has data format %u, which is not emulated",
               buffer_name(processor, cb).c_str(), unsigned{buffer.data_format});
    }
    return buffer;
}

std::optional<DataFormat> format_of(const Processor& processor, std::uint32_t cb) {
    if (cb >= processor.num_circular_buffers || processor.circular_buffers[cb].pages == nullptr) {
        return std::nullopt;
    }
    return format_of(processor.circular_buffers[cb]);
}

void check_format(Processor& processor, FormatRegister target, std::uint32_t cb,
                  const char* function, Location here) {
    const DataFormat format = format_of(tile_buffer(processor, cb, here));
    const FormatSetting& setting =
        processor.compute_state->formats[static_cast<std::size_t>(target)];
    if (!setting.format) {
        refuse(processor, here,
               "%s: the format of %s was never set; call compute_kernel_hw_startup or the "
               "operation's full initialisation first",
               function, register_name(target));
    }
    if (*setting.format != format) {
        refuse(processor, here, "%s: %s holds %s, but %s is set to %s since line %u; call %s",
               function, buffer_name(processor, cb).c_str(), format_name(format),
               register_name(target), format_name(*setting.format),
               static_cast<unsigned>(setting.here.line()), reconfigure_name(target));
    }
}

SourcePrecision source_precision(const Processor& processor) {
    return processor.compute_settings->fp32_dest_acc_en ? SourcePrecision::Tf32
                                                        : SourcePrecision::Bfloat16;
}

void read_operand(Processor& processor, std::uint32_t cb, std::uint32_t tile, const char* function,
                  Location here, float* values) {
    const DataFormat format = format_of(tile_buffer(processor, cb, here));
    if (is_integer(format)) {
        refuse(processor, here, "%s: %s holds %s; the matrix engine computes with floats only",
               function, buffer_name(processor, cb).c_str(), format_name(format));
    }
    if (format == DataFormat::Float32 && processor.compute_settings->unpack_to_dest_fp32[cb]) {
        refuse(processor, here,
               "%s: %s is set to UnpackToDestFp32, so its tiles cannot be operands "
               "of the matrix engine",
               function, buffer_name(processor, cb).c_str());
    }
    unpack_floats(read_tile(processor, cb, tile, format, here), format, source_precision(processor),
                  values);
}

Domain read_words(Processor& processor, std::uint32_t cb, std::uint32_t tile, const char* function,
                  Location here, std::uint32_t* words) {
    const DataFormat format = format_of(tile_buffer(processor, cb, here));
    const bool wide = processor.compute_settings->fp32_dest_acc_en;
    if (is_integer(format) && is_wide(format) && !wide) {
        refuse(processor, here,
               "%s: %s of %s does not fit DST, which has 16 bits without "
               "fp32_dest_acc_en",
               function, format_name(format), buffer_name(processor, cb).c_str());
    }
    const bool exact = wide && processor.compute_settings->unpack_to_dest_fp32[cb];
    unpack_words(read_tile(processor, cb, tile, format, here), format,
                 exact ? SourcePrecision::Float32 : source_precision(processor), words);
    return is_integer(format) ? Domain::Integer : Domain::Float;
}

}  // namespace ttcodegen::device::compute
