/// The addresses at which the L1 of emulated devices is mapped.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ttcodegen::device {

/// One range of addresses below 2 GiB for a whole process. Each library that contains a model has a
/// copy of the backend, and each device an L1; they take turns at these addresses, as models take
/// turns on hardware.
class L1Addresses {
  public:
    /// The range of this process, created by the first copy of the backend.
    /// @throws std::runtime_error if it is not free, or `bytes` do not fit it.
    static L1Addresses& of_process(std::size_t bytes);

    /// Locks the range: no other device is mapped meanwhile, by any copy of the backend. A thread
    /// may hold it more than once.
    class Turn {
      public:
        explicit Turn(L1Addresses& addresses) : addresses_(addresses) { addresses_.lock(); }
        ~Turn() { addresses_.unlock(); }
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        Turn(Turn&&) = delete;
        Turn& operator=(Turn&&) = delete;

      private:
        L1Addresses& addresses_;
    };

    std::byte* begin() const;
    /// Maps the memory of a file to the range, replacing an earlier mapping.
    /// @return A number that differs from `mapped` once another file is mapped.
    /// @throws std::runtime_error if the system refuses.
    std::uint64_t map(int file, std::size_t bytes);
    /// The number of the current mapping.
    std::uint64_t mapped() const;
    /// Unmaps the file with this number, if it is still mapped.
    void unmap(std::uint64_t number);

  private:
    struct Shared;
    explicit L1Addresses(Shared* shared) : shared_(shared) {}
    void lock();
    void unlock();

    Shared* shared_;
};

}  // namespace ttcodegen::device
