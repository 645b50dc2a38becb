"""Generated projects: writing, building, checking and tuning.

- `building`: Builds a project with CMake and Ninja, and records the hashes of the sources
- `check_summary`: Lines that sum up a check for users
- `checking`: `--check`: compares C++, flatbuffer and golden runs on the same random inputs
- `cpu_backend`: CPU backend: built or prebuilt per version, compiler and processor
- `edits`: User edits of a project, and their merge with newly generated files
- `manifest`: manifest.json: contents of a project, and current lines of each op in its C++
- `processes`: Processes of programs: limits, MPI launchers, simulators, and why a run failed
- `running`: Runs of a project's functions on the CPU backend, and reference outputs of a framework
- `settings`: Project settings, and the compilation of a file for callers from Python
- `sources`: Files of a project besides the module's sources
- `staging`: Atomic replacement of a project's files by staging, confined to its folder, under a
  lock
- `toolchain`: Toolchain: compiler, CMake and Ninja, their cached probes, and build steps
- `tuning/`: Tuning edits of a project: read from its C++ as decisions, and reapplied by op
- `writer`: Atomic writing of projects
"""
