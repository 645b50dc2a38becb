#pragma once

#include "support/program.hpp"

namespace support {

/// The process of an executable that runs as several, one on each host of a mesh. All of them do
/// the same, each with the devices of its host; the first one prints and writes.
class Hosts {
  public:
    /// Starts the communication between the processes.
    Hosts(int argc, char** argv);

    /// The parts of the executable, of which only the first process writes outputs.
    ProgramParts parts(ProgramParts parts) const;

    /// The exit status of this process. A failure ends the others, which might wait for it.
    int end(int status) const;

  private:
    bool is_first_;
};

}  // namespace support
