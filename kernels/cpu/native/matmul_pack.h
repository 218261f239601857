// Weights in panels, and their memory.
#pragma once

#include <cstdint>

#include "matmul.h"
#include "matmul_kernel.h"
#include "threads.h"

namespace sgc {

// Memory of `allocate`, released with its owner.
class Memory {
 public:
  Memory() = default;
  explicit Memory(int64_t n_bytes) : n_bytes_(n_bytes), data_(allocate(n_bytes)) {}
  ~Memory() { release(data_, n_bytes_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  template <class Number>
  Number* as() const {
    return static_cast<Number*>(data_);
  }
  int64_t bytes() const { return n_bytes_; }

 private:
  int64_t n_bytes_ = 0;
  void* data_ = nullptr;
};

// The sizes of a packed weight. Every product of them fits 64 bits, or `sized` throws.
struct Sizes {
  int64_t n_out, n_in;
  int64_t n_panels, panel_bytes;
  bool interleaved;
};

Sizes sized(Format format, const Matrix* weights, int n_weights, int64_t n_in, bool interleaved,
            const Kernel& kernel);

void pack_weights(Format format, const Matrix* weights, const Sizes& sizes, const Kernel& kernel,
                  char* panels, Threads& threads);
void pack_biases(const float* biases, const Sizes& sizes, const Kernel& kernel, float* packed);

}  // namespace sgc
