// Products of activations with packed weights.
#pragma once

#include <cstdint>
#include <memory>

#include "numbers.h"
#include "threads.h"

namespace sgc {

// A weight of [n_out, n_in], row-major, in the model's own memory.
struct Matrix {
  const void* data;
  int64_t n_out;
};

// What becomes of a product's sums (fp32) after the bias is added.
enum class Epilogue : int32_t {
  store = 0,   // out = sums, in the activations' format
  store_f32,   // out = sums, fp32 (logits)
  add,         // out += scale * sums; out is fp32 (the residual stream)
  swiglu,      // columns are pairs (gate, up): out = silu(gate) * up; half as many columns
  geglu_tanh,  // the same with gelu (tanh approximation)
  silu,
  gelu,        // erf
  gelu_tanh,
  relu,
};

// A weight packed for an instruction set. `weights`: several of one input are one product, their
// outputs one after the other, or interleaved (a column of the first, one of the second) as pairs.
// Immutable once made; the originals are not needed any more.
class Packed {
 public:
  // format: of the weights and of the activations they are multiplied with. biases: fp32 [n_out]
  // of all outputs in the product's order before interleaving, or null.
  static std::unique_ptr<Packed> make(Format format, const Matrix* weights, int n_weights,
                                      int64_t n_in, const float* biases, bool interleaved,
                                      Threads& threads);
  virtual ~Packed() = default;
  virtual int64_t n_in() const = 0;
  virtual int64_t n_out() const = 0;
  virtual int64_t bytes() const = 0;

  // x: [n_rows, n_in], row stride x_stride elements, in `format`. out: [n_rows, n_out] (half as
  // many for pairs), row stride out_stride elements. Each row's result is the same whatever rows
  // are beside it (one order of sums over n_in), unless `fastest` lets another path be taken.
  virtual void multiply(const void* x, int64_t x_stride, int64_t n_rows, Epilogue epilogue,
                        float scale, void* out, int64_t out_stride, bool fastest,
                        Threads& threads) const = 0;
};

}  // namespace sgc
