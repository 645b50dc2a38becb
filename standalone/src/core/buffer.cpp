#include <atomic>
#include <bit>
#include <cstdlib>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/tensor_data.hpp"
#include "core/trace.hpp"

namespace ttcodegen::cpu {

namespace {

constexpr std::size_t kAlignment = 64;

#ifdef TTCODEGEN_SANITIZE
constexpr std::size_t kRetainedBytes = 0;  // a sanitizer must see every free
#else
constexpr std::size_t kRetainedBytes = std::size_t{512} << 20;
#endif

/// Caches freed blocks for later tensors: fresh pages from the system cost more than the arithmetic
/// of an elementwise operation.
class BlockCache {
  public:
    /// Rounds sizes up to an eighth of their power of two, so that similar tensors share blocks.
    static std::size_t block_size(std::size_t bytes) {
        const std::size_t step = std::max(std::bit_floor(bytes | 1) / 8, kAlignment);
        return std::max((bytes + step - 1) / step * step, kAlignment);
    }

    void* take(std::size_t size) {
        {
            const std::lock_guard lock(mutex_);
            auto& blocks = free_[size];
            if (!blocks.empty()) {
                void* block = blocks.back();
                blocks.pop_back();
                retained_ -= size;
                return block;
            }
        }
        return ::operator new(size, std::align_val_t{kAlignment});
    }

    void give(void* block, std::size_t size) {
        {
            const std::lock_guard lock(mutex_);
            if (retained_ + size <= kRetainedBytes) {
                free_[size].push_back(block);
                retained_ += size;
                return;
            }
        }
        ::operator delete(block, std::align_val_t{kAlignment});
    }

    ~BlockCache() {
        for (auto& [size, blocks] : free_) {
            for (void* block : blocks) {
                ::operator delete(block, std::align_val_t{kAlignment});
            }
        }
    }

  private:
    std::mutex mutex_;
    std::unordered_map<std::size_t, std::vector<void*>> free_;
    std::size_t retained_ = 0;
};

/// Shared by all buffers, so that it outlives tensors that are destroyed after `main`.
std::shared_ptr<BlockCache> block_cache() {
    static const auto cache = std::make_shared<BlockCache>();
    return cache;
}

std::atomic<std::uint64_t> buffers_made = 0;

}  // namespace

Buffer::Buffer(std::size_t bytes) : bytes_(bytes), number_(buffers_made++) {
    const std::size_t size = BlockCache::block_size(bytes);
    auto cache = block_cache();
    auto* memory = static_cast<std::byte*>(cache->take(size));
    memory_ = std::shared_ptr<std::byte>(
        memory, [cache = std::move(cache), size](std::byte* block) { cache->give(block, size); });
}

Buffer::Buffer(std::shared_ptr<std::byte> memory, std::size_t bytes)
    : memory_(std::move(memory)), bytes_(bytes), number_(buffers_made++) {}

std::uint64_t Buffer::made_so_far() { return buffers_made; }

void Buffer::swap_elements(Buffer& other) {
    TT_FATAL(bytes_ == other.bytes_, "A buffer of {} bytes has no room for {}", bytes_,
             other.bytes_);
    forget_derived();
    other.forget_derived();
    std::swap(memory_, other.memory_);
}

void Buffer::forget_derived() {
    is_empty_ = false;
    if (Capture* const capture = current_capture()) {
        capture->keep(*this);
    }
    const std::lock_guard lock(derived_mutex_);
    derived_.reset();
}

}  // namespace ttcodegen::cpu
