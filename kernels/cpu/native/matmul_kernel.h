// One instruction set's products: what matmul.cpp asks of it. Each set has a source of its own,
// compiled with its own flags; it uses nothing of the standard library that is not inlined.
#pragma once

#include <cstdint>

#include "epilogue.h"
#include "numbers.h"

namespace sgc {

// Weights are packed in panels: some columns (outputs) with all of n_in, one panel after the other.
enum class Layout : int32_t {
  single,  // [n_in][columns]
  pairs,   // [n_in / 2][columns][2], bf16
};

// In pairs, n_in is filled up with zeros to a multiple of this, as tiles need it.
constexpr int64_t kPairsUnit = 32;

// An item of work: some rows by some panels.
struct Task {
  const void* x;  // the first row, in the kernel's format of activations
  int64_t x_stride;
  int64_t n_rows, n_in;
  const void* panels;
  int64_t panel_bytes, n_panels;
  const void* after;  // the panels that this thread is likely to be given next
  const float* biases;  // [n_panels * columns], never null
  Epilogue epilogue;
  float scale;
  void* out;  // the first row, at these panels' first column
  int64_t out_stride;
  int64_t n_columns;  // of out, in these panels
  Format out_format;  // what `store` and its like write
};

struct Kernel {
  int columns;  // of a panel. Pairs of outputs: the first ones of its first half, then the others
  int rows;     // that are computed together
  Layout layout;
  Format x_format;  // bf16 activations are made fp32 before, where this is f32
  void (*multiply)(const Task& task);
};

// Null where the library was built for another architecture.
const Kernel* plain_kernel(Format weights);
const Kernel* avx2_kernel(Format weights);
const Kernel* avx512_kernel(Format weights);
const Kernel* avx512_bf16_kernel();
const Kernel* amx_bf16_kernel();  // takes what is packed for avx512_bf16

// Memory of the calling thread's own, until its next call.
char* thread_scratch(int64_t n_bytes);

}  // namespace sgc
