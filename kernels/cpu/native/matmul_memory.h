// Memory of packed weights, and of threads.
#pragma once

#include <cstdint>
#include <memory>

#include "numbers.h"

namespace sgc {

// Memory of `allocate`, released with its owner.
class Memory {
 public:
  explicit Memory(int64_t n_bytes, HugePages pages = HugePages::at_once)
      : n_bytes_(n_bytes), data_(allocate(n_bytes, pages)) {}
  ~Memory() { release(data_, n_bytes_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  template <class Number>
  Number* as() const {
    return static_cast<Number*>(data_);
  }
  int64_t bytes() const { return n_bytes_; }

 private:
  int64_t n_bytes_;
  void* data_;
};

// Zeroed memory that weights lie in one after the other: most are smaller than a few huge pages,
// and each by itself would leave a part of one unused, or have none.
std::shared_ptr<char> allocate_weights(int64_t n_bytes);

}  // namespace sgc
