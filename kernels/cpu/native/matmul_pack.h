// Weights in panels.
#pragma once

#include <cstdint>

#include "matmul.h"
#include "matmul_kernel.h"
#include "threads.h"

namespace sgc {

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
