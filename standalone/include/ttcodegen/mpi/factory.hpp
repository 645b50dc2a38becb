#pragma once

#include "tt-metalium/distributed_context.hpp"

namespace ttcodegen::cpu {

/// Starts MPI; given by context.cpp, which programs of several processes link.
using ContextFactory = tt::tt_metal::distributed::multihost::ContextPtr (*)(int argc, char** argv);

/// Sets what `DistributedContext::create` calls.
void set_context_factory(ContextFactory factory);

}  // namespace ttcodegen::cpu
