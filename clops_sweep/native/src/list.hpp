// An array on the heap. Not std::vector: the linker would merge its functions across variants, and a CPU could meet
// instructions that it does not have.
#pragma once

#include <cstdlib>
#include <new>

#include "vector.hpp"

namespace clops::CLOPS_VARIANT {

// Content is plain data: it is copied byte by byte, and never destroyed.
template <class T>
class List {
 public:
  List() = default;
  explicit List(std::size_t size, T value = {}) {
    for (std::size_t i = 0; i < size; ++i) append(value);
  }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() { std::free(content_); }

  std::size_t size() const { return size_; }
  T& operator[](std::ptrdiff_t i) { return content_[i]; }
  const T& operator[](std::ptrdiff_t i) const { return content_[i]; }
  T* data() { return content_; }
  const T* data() const { return content_; }
  T* begin() { return content_; }
  T* end() { return content_ + size_; }
  const T* begin() const { return content_; }
  const T* end() const { return content_ + size_; }
  T& last() { return content_[size_ - 1]; }

  void append(T value) {
    if (size_ == capacity_) reserve(2 * capacity_ + 8);
    content_[size_++] = value;
  }

  void remove_last() { --size_; }

  // Makes room for at least `size` entries, whose content is arbitrary.
  void at_least(std::size_t size) {
    if (size > capacity_) reserve(size);
    if (size > size_) size_ = size;
  }

 private:
  void reserve(std::size_t capacity) {
    const std::size_t bytes = (capacity * sizeof(T) + 63) / 64 * 64;
    T* content = static_cast<T*>(std::aligned_alloc(64, bytes));
    if (!content) throw std::bad_alloc();
    if (size_ > 0) std::memcpy(static_cast<void*>(content), content_, size_ * sizeof(T));
    std::free(content_);
    content_ = content;
    capacity_ = capacity;
  }

  T* content_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace clops::CLOPS_VARIANT
