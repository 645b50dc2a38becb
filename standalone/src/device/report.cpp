#include "device/report.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <utility>

#include "device/diagnostics.hpp"
#include "device/run.hpp"
#include "tt_stl/assert.hpp"

namespace ttcodegen::device {

namespace {

using Field = std::pair<const char*, std::uint64_t Counters::*>;

constexpr std::array kFields{
    Field{"noc_read_bytes", &Counters::noc_read_bytes},
    Field{"noc_written_bytes", &Counters::noc_written_bytes},
    Field{"own_l1_bytes", &Counters::own_l1_bytes},
    Field{"dram_read_bytes", &Counters::dram_read_bytes},
    Field{"dram_written_bytes", &Counters::dram_written_bytes},
    Field{"unpacked_tiles", &Counters::unpacked_tiles},
    Field{"packed_tiles", &Counters::packed_tiles},
    Field{"matmul_tiles", &Counters::matmul_tiles},
    Field{"fpu_tiles", &Counters::fpu_tiles},
    Field{"sfpu_tiles", &Counters::sfpu_tiles},
};

void add(Counters& sum, const Counters& counters) {
    for (const auto& [name, field] : kFields) {
        sum.*field += counters.*field;
    }
}

std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            result += '\\';
            result += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            result += format("\\u%04x", static_cast<unsigned>(c));
        } else {
            result += c;
        }
    }
    return result + "\"";
}

/// The counters as JSON: all, or those that are not 0.
std::string counters_json(const Counters& counters, bool all = true) {
    std::string text = "{";
    for (const auto& [name, field] : kFields) {
        if (all || counters.*field != 0) {
            text += std::string(text.size() > 1 ? ", " : "") + "\"" + name +
                    "\": " + std::to_string(counters.*field);
        }
    }
    return text + "}";
}

std::string zones_json(const CoreReport& core) {
    if (core.zones.empty()) {
        return "";
    }
    std::string text = format(", \"lost_zones\": %llu, \"zones\": [",
                              static_cast<unsigned long long>(core.lost_zones));
    for (std::size_t i = 0; i < core.zones.size(); ++i) {
        const ZoneReport& zone = core.zones[i];
        text += std::string(i == 0 ? "\n" : ",\n") + "        {\"name\": " + quoted(zone.name) +
                ", \"line\": " + std::to_string(zone.line) +
                ", \"begin\": " + counters_json(zone.begin, false) +
                ", \"end\": " + counters_json(zone.end, false) + "}";
    }
    return text + "]";
}

std::string fidelity_of(const Kernel& kernel) {
    const auto* config = std::get_if<tt::tt_metal::ComputeConfig>(&kernel.config);
    if (config == nullptr) {
        return "";
    }
    const auto passes = static_cast<unsigned>(config->math_fidelity);
    return passes == 0 ? "lofi" : "hifi" + std::to_string(passes);
}

std::string report_json(const ProgramReport& report) {
    std::string text = format(
                           "  {\"chip\": %zu, \"compile_seconds\": %.6f, \"run_seconds\": %.6f, "
                           "\"total\": ",
                           report.chip, report.compile_seconds, report.run_seconds) +
                       counters_json(report.total) + ",\n   \"kernels\": [";
    for (std::size_t i = 0; i < report.kernels.size(); ++i) {
        const KernelReport& kernel = report.kernels[i];
        text += std::string(i == 0 ? "\n" : ",\n") + "    {\"kernel\": " + quoted(kernel.kernel) +
                ", \"processor\": " + quoted(kernel.processor) +
                ", \"cores\": " + std::to_string(kernel.cores) +
                ", \"fidelity\": " + quoted(kernel.fidelity) +
                ", \"counters\": " + counters_json(kernel.counters) + ",\n     \"places\": [";
        for (std::size_t place = 0; place < kernel.places.size(); ++place) {
            const CoreReport& core = kernel.places[place];
            text += std::string(place == 0 ? "\n" : ",\n") +
                    format("      {\"noc\": [%u, %u], \"counters\": ", core.noc_x, core.noc_y) +
                    counters_json(core.counters) + zones_json(core) + "}";
        }
        text += "]}";
    }
    return text + "]}";
}

}  // namespace

void Run::report(double seconds) {
    ProgramReport& report = program_.report;
    ++report.runs;
    report.chip = chip_;
    report.run_seconds = seconds;
    report.total = {};
    report.kernels.clear();
    std::map<const Kernel*, std::size_t> index;
    for (const auto& kernel : program_.kernels) {
        index[kernel.get()] = report.kernels.size();
        report.kernels.push_back({kernel->source.name,
                                  processor_name(kernel->processor()),
                                  fidelity_of(*kernel),
                                  0,
                                  Counters{},
                                  {}});
    }
    for (const auto& state : processors_) {
        KernelReport& kernel = report.kernels[index[state->kernel]];
        ++kernel.cores;
        add(kernel.counters, state->processor.counters);
        kernel.places.push_back({static_cast<std::uint32_t>(state->core->noc.x),
                                 static_cast<std::uint32_t>(state->core->noc.y),
                                 state->processor.counters, state->zones.zones(),
                                 state->zones.lost()});
        add(report.total, state->processor.counters);
    }
    write_report(report);
}

std::uint64_t Run::progress() const {
    std::uint64_t sum = resumes_;
    if (running_ != nullptr) {
        for (const auto& [name, field] : kFields) {
            sum += running_->processor.counters.*field;
        }
    }
    return sum;
}

void write_report(const ProgramReport& report) {
    const char* path = std::getenv("TTCODEGEN_DEVICE_REPORT");
    if (path == nullptr || *path == '\0') {
        return;
    }
    // The file is complete after each program, and contains all programs of the process.
    static std::mutex mutex;
    static std::string reports;
    const std::lock_guard lock(mutex);
    reports += (reports.empty() ? "" : ",\n") + report_json(report);
    std::ofstream file(path, std::ios::trunc);
    file << "[\n" << reports << "\n]\n";
    TT_FATAL(file.good(), "Cannot write the report '{}' (TTCODEGEN_DEVICE_REPORT)", path);
}

}  // namespace ttcodegen::device
