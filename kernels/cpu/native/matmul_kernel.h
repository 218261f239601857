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
  quads,   // [n_in / 4][columns][4], i8
};

// A panel of i8 begins with its columns' scales, fp32, and sums of weights, int32.
constexpr int64_t head_bytes(int columns) { return int64_t{columns} * 8; }

// Of more quads sums of bytes might not fit 32 bits.
constexpr int64_t kMostQuads = 1 << 14;

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

// What a kernel makes of a row of bf16 before it multiplies.
struct RowForm {
  int64_t (*bytes)(int64_t n_in);
  void (*make)(const bf16* x, int64_t n_in, char* row);
};

struct Kernel {
  int columns;  // of a panel. Pairs of outputs: the first ones of its first half, then the others
  int rows;     // that are computed together
  Layout layout;
  Format x_format;  // bf16 activations are made fp32 before, where this is f32
  void (*multiply)(const Task& task);
  const RowForm* row_form = nullptr;  // null: rows are numbers of x_format
};

// Null where the library was built for another architecture.
const Kernel* plain_kernel(Format weights);
const Kernel* avx2_kernel(Format weights);
const Kernel* avx512_kernel(Format weights);
const Kernel* avx512_bf16_kernel();
const Kernel* avx512_bf16_i8_kernel();  // for n_in up to kMostQuads * 4
const Kernel* amx_bf16_kernel();  // takes what is packed for avx512_bf16

// Memory of the calling thread's own, until its next call.
char* thread_scratch(int64_t n_bytes);

}  // namespace sgc
