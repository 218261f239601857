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

Sizes sized(Format packed_as, const Matrix* weights, int n_weights, int64_t n_in, bool interleaved,
            const Kernel& kernel);

// From numbers of `format`. A weight of i8 is the nearest of 255 multiples of its output's scale.
void pack_weights(Format format, Format packed_as, const Matrix* weights, const Sizes& sizes,
                  const Kernel& kernel, char* panels, Threads& threads);
void pack_biases(const float* biases, const Sizes& sizes, const Kernel& kernel, float* packed);

}  // namespace sgc
