// What a step does to single rows of activations: embeddings, norms, soft caps. One function table
// for each instruction set; `rows.inc` is compiled once for each.
#pragma once

#include <cstdint>

#include "numbers.h"

namespace sgc {

enum class NormKind : int32_t { rms = 0, layer = 1, none = 2 };  // none: in as it is

struct Norm {
  NormKind kind;
  float eps;
  const float* weight;  // [width]; null: all ones
  const float* bias;    // [width], or null
  bool adds;            // out += norm(in), where out is fp32, and not out = norm(in)
};

struct RowFunctions {
  // out = scale * in, both [width].
  void (*embed)(const void* in, Format in_format, float scale, float* out, int64_t width);
  // out += scale * in.
  void (*add)(const void* in, Format in_format, float scale, float* out, int64_t width);
  void (*norm)(const Norm& norm, const void* in, Format in_format, void* out, Format out_format,
               int64_t width);
  // x = cap * tanh(scale * x / cap); a cap of 0 only scales.
  void (*cap)(float* x, float scale, float cap, int64_t width);
  // The cosines and sines of one position's angles. inverse, cosines, sines: [n].
  void (*angles)(float position, const float* inverse, float scale, float* cosines, float* sines,
                 int64_t n);
};

const RowFunctions& row_functions();  // for `best()`

}  // namespace sgc
