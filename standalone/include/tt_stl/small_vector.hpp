#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace ttsl {

static constexpr std::size_t SMALL_VECTOR_SIZE = 8;

/// A vector that keeps up to `PREALLOCATED_SIZE` elements inside the object.
///
/// Limited to the needs of shapes, dimension lists and padding specifications: elements are
/// trivially copyable, so growing and copying are plain byte copies.
template <typename T, std::size_t PREALLOCATED_SIZE = SMALL_VECTOR_SIZE>
struct SmallVector {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    using value_type = T;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using reference = T&;
    using const_reference = const T&;
    using pointer = T*;
    using const_pointer = const T*;
    using iterator = T*;
    using const_iterator = const T*;
    using reverse_iterator = std::reverse_iterator<iterator>;
    using const_reverse_iterator = std::reverse_iterator<const_iterator>;

    SmallVector() = default;
    explicit SmallVector(size_type count, const T& value = T()) { assign(count, value); }
    template <typename Iterator>
        requires std::input_iterator<Iterator>
    SmallVector(Iterator first, Iterator last) {
        append(first, last);
    }
    SmallVector(std::initializer_list<T> values) { append(values.begin(), values.end()); }
    SmallVector(const SmallVector& other) { append(other.begin(), other.end()); }
    SmallVector(SmallVector&& other) noexcept { take(other); }
    SmallVector& operator=(const SmallVector& other) {
        if (this != &other) {
            size_ = 0;
            append(other.begin(), other.end());
        }
        return *this;
    }
    SmallVector& operator=(SmallVector&& other) noexcept {
        if (this != &other) {
            release();
            take(other);
        }
        return *this;
    }
    SmallVector& operator=(std::initializer_list<T> values) {
        size_ = 0;
        append(values.begin(), values.end());
        return *this;
    }
    ~SmallVector() { release(); }

    iterator begin() { return data_; }
    iterator end() { return data_ + size_; }
    const_iterator begin() const { return data_; }
    const_iterator end() const { return data_ + size_; }
    const_iterator cbegin() const { return begin(); }
    const_iterator cend() const { return end(); }
    reverse_iterator rbegin() { return reverse_iterator(end()); }
    reverse_iterator rend() { return reverse_iterator(begin()); }
    const_reverse_iterator rbegin() const { return const_reverse_iterator(end()); }
    const_reverse_iterator rend() const { return const_reverse_iterator(begin()); }

    T* data() { return data_; }
    const T* data() const { return data_; }
    size_type size() const { return size_; }
    size_type capacity() const { return capacity_; }
    bool empty() const { return size_ == 0; }

    T& operator[](size_type index) { return data_[index]; }
    const T& operator[](size_type index) const { return data_[index]; }
    T& front() { return data_[0]; }
    const T& front() const { return data_[0]; }
    T& back() { return data_[size_ - 1]; }
    const T& back() const { return data_[size_ - 1]; }

    void reserve(size_type capacity) {
        if (capacity <= capacity_) {
            return;
        }
        std::allocator<T> allocator;
        T* grown = allocator.allocate(capacity);
        std::uninitialized_copy(begin(), end(), grown);
        const size_type size = size_;
        release();
        data_ = grown;
        capacity_ = capacity;
        size_ = size;
    }
    void resize(size_type size, const T& value = T()) {
        const T copy = value;  // `value` may live in this vector
        reserve(size);
        if (size > size_) {
            std::uninitialized_fill(end(), data_ + size, copy);
        }
        size_ = size;
    }
    void assign(size_type count, const T& value) {
        const T copy = value;
        size_ = 0;
        resize(count, copy);
    }
    template <typename Iterator>
        requires std::input_iterator<Iterator>
    void assign(Iterator first, Iterator last) {
        size_ = 0;
        append(first, last);
    }
    void clear() { size_ = 0; }
    void push_back(const T& value) {
        const T copy = value;
        if (size_ == capacity_) {
            reserve(2 * capacity_);
        }
        std::construct_at(data_ + size_, copy);
        ++size_;
    }
    template <typename... Args>
    T& emplace_back(Args&&... args) {
        push_back(T(std::forward<Args>(args)...));
        return back();
    }
    void pop_back() { --size_; }
    template <typename Iterator>
        requires std::input_iterator<Iterator>
    void append(Iterator first, Iterator last) {
        for (; first != last; ++first) {
            push_back(static_cast<T>(*first));
        }
    }
    iterator insert(const_iterator position, const T& value) {
        return insert(position, &value, &value + 1);
    }
    template <typename Iterator>
        requires std::input_iterator<Iterator>
    iterator insert(const_iterator position, Iterator first, Iterator last) {
        const size_type offset = static_cast<size_type>(position - begin());
        const size_type old_size = size_;
        append(first, last);
        std::rotate(begin() + offset, begin() + old_size, end());
        return begin() + offset;
    }
    iterator erase(const_iterator position) { return erase(position, position + 1); }
    iterator erase(const_iterator first, const_iterator last) {
        iterator target = begin() + (first - begin());
        std::copy(last, const_iterator(end()), target);
        size_ -= static_cast<size_type>(last - first);
        return target;
    }

    friend bool operator==(const SmallVector& left, const SmallVector& right) {
        return std::equal(left.begin(), left.end(), right.begin(), right.end());
    }

  private:
    T* inline_elements() { return reinterpret_cast<T*>(inline_storage_); }
    bool is_inline() const { return data_ == reinterpret_cast<const T*>(inline_storage_); }
    void release() {
        if (!is_inline()) {
            std::allocator<T>().deallocate(data_, capacity_);
        }
        data_ = inline_elements();
        capacity_ = PREALLOCATED_SIZE;
        size_ = 0;
    }
    void take(SmallVector& other) {
        if (other.is_inline()) {
            append(other.begin(), other.end());
            other.size_ = 0;
        } else {
            data_ = std::exchange(other.data_, other.inline_elements());
            capacity_ = std::exchange(other.capacity_, PREALLOCATED_SIZE);
            size_ = std::exchange(other.size_, 0);
        }
    }

    alignas(T) std::byte inline_storage_[PREALLOCATED_SIZE * sizeof(T)];
    T* data_ = inline_elements();
    size_type size_ = 0;
    size_type capacity_ = PREALLOCATED_SIZE;
};

/// The specialisation for elements that are not trivially copyable, which no shape has: a vector.
template <typename T, std::size_t PREALLOCATED_SIZE>
    requires(!std::is_trivially_copyable_v<T>)
struct SmallVector<T, PREALLOCATED_SIZE> : public std::vector<T> {
    using std::vector<T>::vector;
};

}  // namespace ttsl

namespace tt {
namespace stl {
using namespace ::ttsl;
}  // namespace stl
}  // namespace tt

namespace ttnn {
template <typename T, std::size_t PREALLOCATED_SIZE = ttsl::SMALL_VECTOR_SIZE>
using SmallVector = ttsl::SmallVector<T, PREALLOCATED_SIZE>;
}
