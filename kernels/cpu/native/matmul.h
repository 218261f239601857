// Products of activations with packed weights.
#pragma once

#include <cstdint>
#include <memory>

#include "epilogue.h"
#include "numbers.h"
#include "threads.h"

namespace sgc {

// A weight of [n_out, n_in], row-major, in the model's own memory.
struct Matrix {
  const void* data;
  int64_t n_out;
};

// A weight packed for an instruction set. `weights`: several of one input are one product, their
// outputs one after the other, or interleaved (a column of the first, one of the second) as pairs.
// Immutable once made; the originals are not needed any more.
class Packed {
 public:
  // format: of the weights and of the activations they are multiplied with. packed_as: the same, or
  // i8: each output's weights become integers up to 127 times a scale of its own. biases: fp32
  // [n_out] of all outputs in the product's order before interleaving, or null.
  static std::unique_ptr<Packed> make(Format format, Format packed_as, const Matrix* weights,
                                      int n_weights, int64_t n_in, const float* biases,
                                      bool interleaved, Threads& threads);
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
