// The loops of a task: panel by panel, and in it some rows at a time, whose sums a micro-kernel
// computes over all of n_in.
#pragma once

#include "matmul_epilogue.h"

namespace sgc {
namespace {

// Where the next weights are. Each step over n_in asks for its share of them, so that memory is
// read while rows are computed, and not between panels.
struct Ahead {
  const char* at;
  int64_t step;  // bytes a step
};

// A micro-kernel:
//   X: what it takes as activations. kRows: the most rows. kStep: bytes of a panel that a step takes.
//   sums<rows>(x, x_stride, n_in, panel, ahead, sums): [rows][kColumns]
template <class Micro, int rows>
void sums_of(const Task& task, const char* x, const char* panel, Ahead ahead, float* sums) {
  using X = typename Micro::X;
  Micro::template sums<rows>(reinterpret_cast<const X*>(x), task.x_stride, task.n_in, panel, ahead,
                             sums);
}

using Sums = void (*)(const Task&, const char*, const char*, Ahead, float*);

template <class Micro>
struct Table {
  Sums sums[Micro::kRows + 1];  // by the number of rows
  constexpr Table() : sums{} { fill<Micro::kRows>(); }
  template <int rows>
  constexpr void fill() {
    sums[rows] = sums_of<Micro, rows>;
    if constexpr (rows > 1) fill<rows - 1>();
  }
};

inline const char* panel_of(const Task& task, int64_t index) {
  return static_cast<const char*>(task.panels) + index * task.panel_bytes;
}

// Few rows wait for memory: each step asks for what comes a little later. Many rows stay longer at
// a panel: together they ask for the next one. step_bytes: of a panel, that a step takes.
inline Ahead ahead_of(const Task& task, int64_t index, int64_t step_bytes, int64_t group,
                      int64_t n_groups) {
  constexpr int64_t kNear = 4096;
  if (n_groups == 1) return {panel_of(task, index) + kNear, step_bytes};
  const char* next = index + 1 < task.n_panels ? panel_of(task, index + 1)
                                               : static_cast<const char*>(task.after);
  const int64_t step = (step_bytes + n_groups - 1) / n_groups;
  const int64_t n_steps = task.panel_bytes / step_bytes;
  return {next + group * n_steps * step, step};
}

inline Target target_of(const Task& task, int64_t index, int64_t row) {
  const int64_t out_bytes = bytes_of_out(task), stride_bytes = task.out_stride * out_bytes;
  const int64_t n_out = is_paired(task.epilogue) ? kLanes : kColumns;  // of a panel
  const int64_t left = task.n_columns - index * n_out;
  return {static_cast<char*>(task.out) + row * stride_bytes + index * n_out * out_bytes,
          stride_bytes, left < n_out ? left : n_out, task.biases + index * kColumns};
}

template <class Micro>
void multiply_panel(const Task& task, int64_t index) {
  static constexpr Table<Micro> table;
  alignas(64) float sums[Micro::kRows * kColumns];
  const char* panel = panel_of(task, index);
  const int64_t n_groups = (task.n_rows + Micro::kRows - 1) / Micro::kRows;
  const int64_t row_bytes = task.x_stride * static_cast<int64_t>(sizeof(typename Micro::X));
  for (int64_t group = 0; group < n_groups; ++group) {
    const int64_t first = group * task.n_rows / n_groups;  // of like size: 16 are 8 and 8
    const auto n = static_cast<int>((group + 1) * task.n_rows / n_groups - first);
    const char* x = static_cast<const char*>(task.x) + first * row_bytes;
    const Ahead ahead = ahead_of(task, index, Micro::kStep, group, n_groups);
    table.sums[n](task, x, panel, ahead, sums);
    finish(sums, n, target_of(task, index, first), task);
  }
}

template <class Micro>
void multiply_blocks(const Task& task) {
  for (int64_t i = 0; i < task.n_panels; ++i) multiply_panel<Micro>(task, i);
}

}  // namespace
}  // namespace sgc
