// Products in fp32, with weights in fp32, bf16 or i8. SGC_LANES and SGC_ROWS (computed together)
// are the source's.
#pragma once

#include "matmul_blocks.h"

namespace sgc {
namespace {

template <class Weight>
struct Products {
  using X = float;
  static constexpr int kRows = SGC_ROWS;
  static constexpr int64_t kStep = kColumns * static_cast<int64_t>(sizeof(Weight));

  template <int rows>
  static void sums(const float* x, int64_t stride, int64_t n_in, const char* panel, Ahead ahead,
                   float* out) {
    constexpr bool is_scaled = sizeof(Weight) == 1;
    const float* scales = reinterpret_cast<const float*>(panel);
    const Weight* weights =
        reinterpret_cast<const Weight*>(panel + (is_scaled ? head_bytes(kColumns) : 0));
    Floats a[rows] = {}, b[rows] = {};
    for (int64_t k = 0; k < n_in; ++k, weights += kColumns, ahead.at += ahead.step) {
      __builtin_prefetch(ahead.at);
      if constexpr (kStep > 64) __builtin_prefetch(ahead.at + 64);
      const Floats w0 = load(weights), w1 = load(weights + kLanes);
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r) {
        const Floats value = all(x[r * stride + k]);
        a[r] += value * w0;
        b[r] += value * w1;
      }
    }
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r) {
      if constexpr (is_scaled) {
        a[r] *= load(scales);
        b[r] *= load(scales + kLanes);
      }
      store(out + r * kColumns, a[r]);
      store(out + r * kColumns + kLanes, b[r]);
    }
  }
};

template <class Weight>
constexpr Kernel kFloatKernel{kColumns, SGC_ROWS, Layout::single, Format::f32,
                              multiply_blocks<Products<Weight>>};

inline const Kernel* float_kernel(Format weights) {
  return weights == Format::f32    ? &kFloatKernel<float>
         : weights == Format::bf16 ? &kFloatKernel<bf16>
                                   : &kFloatKernel<int8_t>;
}

}  // namespace
}  // namespace sgc
