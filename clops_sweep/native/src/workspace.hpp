// Memory for a kernel's intermediate results, reused from call to call.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace clops {

class Workspace {
 public:
  void* of(std::size_t bytes) {
    if (bytes > size_) {
      size_ = (bytes + 63) / 64 * 64;
      memory_.reset(std::aligned_alloc(64, size_));
      if (!memory_) throw std::bad_alloc();
    }
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  std::size_t size_ = 0;
};

}  // namespace clops
