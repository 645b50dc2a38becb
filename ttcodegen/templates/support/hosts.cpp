#include "support/hosts.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <tt-metalium/distributed_context.hpp>

namespace support {

namespace {

using tt::tt_metal::distributed::multihost::DistributedContext;

/// Mostly all processes fail alike: the first one reports it and ends the others before they do.
void wait_for_first() { std::this_thread::sleep_for(std::chrono::seconds(1)); }

/// Ends processes that would otherwise wait for this one forever.
void abort_job(int status) { DistributedContext::get_current_world()->abort(status); }

}  // namespace

Hosts::Hosts(int argc, char** argv) {
    try {
        DistributedContext::create(argc, argv);
        is_first_ = *DistributedContext::get_current_world()->rank() == 0;
    } catch (const std::exception& error) {
        leave(std::string("the processes cannot reach each other: ") + error.what(), 3);
    }
    end_others = abort_job;
    if (!is_first_) {
        before_report = wait_for_first;
        if (std::freopen("/dev/null", "w", stdout) == nullptr) {
            leave("/dev/null cannot be written", 3);
        }
    }
}

ProgramParts Hosts::parts(ProgramParts parts) const {
    parts.writes_outputs = is_first_;
    return parts;
}

int Hosts::end(int status) const {
    if (status > 1) {
        std::fflush(stdout);
        abort_job(status);
    }
    return status;
}

}  // namespace support
