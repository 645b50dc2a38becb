#pragma once

#include <cstdint>

namespace tensor_accessor {

/// A page in an iteration over the pages of an accessor.
class Page {
  public:
    Page(std::uint64_t noc_addr, std::uint32_t page_id) : noc_addr_(noc_addr), page_id_(page_id) {}
    std::uint64_t noc_addr() const { return noc_addr_; }
    std::uint32_t page_id() const { return page_id_; }

  private:
    std::uint64_t noc_addr_;
    std::uint32_t page_id_;
};

/// The pages of a half-open interval, for range-based loops.
template <typename Accessor>
class Pages {
  public:
    Pages(const Accessor& accessor, std::uint32_t begin, std::uint32_t end, std::uint8_t noc)
        : accessor_(accessor), begin_(begin), end_(end), noc_(noc) {}

    class Iterator {
      public:
        Iterator(const Pages& pages, std::uint32_t id) : pages_(pages), id_(id) {}
        Page operator*() const { return {pages_.accessor_.get_noc_addr(id_, 0, pages_.noc_), id_}; }
        Iterator& operator++() {
            ++id_;
            return *this;
        }
        bool operator==(const Iterator& other) const { return id_ == other.id_; }

      private:
        const Pages& pages_;
        std::uint32_t id_;
    };

    Iterator begin() const { return {*this, begin_}; }
    Iterator end() const { return {*this, end_}; }

  private:
    const Accessor& accessor_;
    std::uint32_t begin_;
    std::uint32_t end_;
    std::uint8_t noc_;
};

}  // namespace tensor_accessor
