#include "device/l1_addresses.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>

#include "tt_stl/assert.hpp"

namespace ttcodegen::device {

/// State shared by the copies of the backend in a process: a page at a fixed address, in the layout
/// of one version of this structure.
struct L1Addresses::Shared {
    enum State : std::uint32_t { New = 0, Ready = 1, Failed = 2 };
    std::atomic<std::uint32_t> state;
    pthread_mutex_t mutex;
    std::byte* begin;
    std::atomic<std::uint64_t> mapped;
};

namespace {

/// Bounds of the range: above executables that are not position independent, and below the shadow
/// memory of AddressSanitizer, which starts at 0x7fff8000.
constexpr std::uint64_t kFirst = 0x10000000;
constexpr std::uint64_t kLast = 0x60000000;
constexpr std::uint64_t kStep = 0x4000000;
/// The L1 of the largest device, with a margin.
constexpr std::size_t kBytes = 0x14000000;
/// The shared page precedes the range. Its name, which /proc shows, identifies its owner.
constexpr std::uint64_t kSharedPage = 0xff00000;
constexpr std::size_t kPageBytes = 4096;
constexpr const char* kSharedName = "ttcodegen-l1-addresses-1";
constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

bool is_shared_page() {
    std::ifstream maps("/proc/self/maps");
    std::string line;
    while (std::getline(maps, line)) {
        if (line.starts_with("0ff00000-") && line.find(kSharedName) != std::string::npos) {
            return true;
        }
    }
    return false;
}

/// Private, so that a forked process has its own.
void* map_shared_page(bool& is_new) {
    const int file = memfd_create(kSharedName, MFD_CLOEXEC);
    TT_FATAL(file >= 0 && ftruncate(file, kPageBytes) == 0,
             "The system gives no memory for the emulated device");
    void* wanted = reinterpret_cast<void*>(kSharedPage);
    void* page = mmap(wanted, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED_NOREPLACE,
                      file, 0);
    close(file);
    is_new = page == wanted;
    if (!is_new && page != MAP_FAILED) {
        munmap(page, kPageBytes);
    }
    TT_FATAL(is_new || is_shared_page(),
             "Something else is at address {:#x} of this process, which emulated devices share",
             kSharedPage);
    return wanted;
}

std::byte* reserve() {
    for (std::uint64_t base = kFirst; base + kBytes <= kLast; base += kStep) {
        void* wanted = reinterpret_cast<void*>(base);
        void* memory = mmap(wanted, kBytes, PROT_NONE, kReserve | MAP_FIXED_NOREPLACE, -1, 0);
        if (memory == wanted) {
            return static_cast<std::byte*>(memory);
        }
        if (memory != MAP_FAILED) {
            munmap(memory, kBytes);
        }
    }
    return nullptr;
}

}  // namespace

L1Addresses& L1Addresses::of_process(std::size_t bytes) {
    static L1Addresses addresses = [] {
        bool is_new = false;
        auto* const shared = static_cast<Shared*>(map_shared_page(is_new));
        if (is_new) {
            pthread_mutexattr_t recursive;
            pthread_mutexattr_init(&recursive);
            pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
            pthread_mutex_init(&shared->mutex, &recursive);
            pthread_mutexattr_destroy(&recursive);
            shared->begin = reserve();
            shared->state = shared->begin == nullptr ? Shared::Failed : Shared::Ready;
        }
        while (shared->state == Shared::New) {
            sched_yield();
        }
        return L1Addresses(shared);
    }();
    TT_FATAL(addresses.shared_->state == Shared::Ready && bytes <= kBytes,
             "No {} bytes of addresses below 2 GiB are free for the L1 of the emulated device",
             bytes);
    return addresses;
}

std::byte* L1Addresses::begin() const { return shared_->begin; }

std::uint64_t L1Addresses::map(int file, std::size_t bytes) {
    void* memory = mmap(shared_->begin, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file, 0);
    TT_FATAL(memory == shared_->begin, "The system cannot map the L1 of an emulated device");
    return ++shared_->mapped;
}

std::uint64_t L1Addresses::mapped() const {
    return shared_->mapped.load(std::memory_order_relaxed);
}

void L1Addresses::unmap(std::uint64_t number) {
    const Turn turn(*this);
    if (shared_->mapped == number) {
        mmap(shared_->begin, kBytes, PROT_NONE, kReserve | MAP_FIXED, -1, 0);
        ++shared_->mapped;
    }
}

void L1Addresses::lock() { pthread_mutex_lock(&shared_->mutex); }
void L1Addresses::unlock() { pthread_mutex_unlock(&shared_->mutex); }

}  // namespace ttcodegen::device
