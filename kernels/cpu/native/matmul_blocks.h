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

// A micro-kernel: static void sums<rows>(const X* x, stride, n_in, const char* panel, Ahead, float*
// sums [rows][kColumns]); kRows: the most rows; kStep: bytes of a panel that a step takes.
template <class Micro, int rows>
void sums_of(const Task& task, const char* x, const char* panel, Ahead ahead, float* sums) {
  using X = typename Micro::X;
  Micro::template sums<rows>(reinterpret_cast<const X*>(x), task.x_stride, task.n_in, panel, ahead,
                             sums);
}

using Sums = void (*)(const Task&, const char*, const char*, Ahead, float*);

template <class Micro, int rows>
struct Table {  // [rows + 1], by the number of rows
  Sums sums[rows + 1];
  constexpr Table() : sums{} { fill<rows>(); }
  template <int n>
  constexpr void fill() {
    sums[n] = sums_of<Micro, n>;
    if constexpr (n > 1) fill<n - 1>();
  }
};

// Few rows wait for memory, and each step asks for what comes a little later. Many rows stay longer
// at a panel: together they ask for the next one.
template <class Micro>
Ahead ahead_of(const Task& task, const char* panel, int64_t group, int64_t n_groups, bool is_last) {
  constexpr int64_t kNear = 4096;
  if (n_groups == 1) return {panel + kNear, Micro::kStep};
  if (is_last) return {panel, 0};
  const int64_t step = (Micro::kStep + n_groups - 1) / n_groups;
  const int64_t n_steps = task.panel_bytes / Micro::kStep;
  return {panel + task.panel_bytes + group * n_steps * step, step};
}

template <class Micro>
void multiply_panel(const Task& task, const char* panel, const Target& target, bool is_last) {
  static constexpr Table<Micro, Micro::kRows> table;
  alignas(64) float sums[Micro::kRows * kColumns];
  const int64_t n_groups = (task.n_rows + Micro::kRows - 1) / Micro::kRows;
  const int64_t row_bytes = task.x_stride * static_cast<int64_t>(sizeof(typename Micro::X));
  for (int64_t group = 0; group < n_groups; ++group) {
    const int64_t first = group * task.n_rows / n_groups;  // of like size: 16 are 8 and 8
    const auto n = static_cast<int>((group + 1) * task.n_rows / n_groups - first);
    const char* x = static_cast<const char*>(task.x) + first * row_bytes;
    const Ahead ahead = ahead_of<Micro>(task, panel, group, n_groups, is_last);
    table.sums[n](task, x, panel, ahead, sums);
    Target rows = target;
    rows.out += first * target.stride_bytes;
    finish(sums, n, rows, task);
  }
}

template <class Micro>
void multiply_blocks(const Task& task) {
  const int64_t out_bytes = bytes_of_out(task);
  const int64_t n_out = is_paired(task.epilogue) ? kLanes : kColumns;  // of a panel
  for (int64_t i = 0; i < task.n_panels; ++i) {
    const char* panel = static_cast<const char*>(task.panels) + i * task.panel_bytes;
    const int64_t left = task.n_columns - i * n_out;
    const Target target{static_cast<char*>(task.out) + i * n_out * out_bytes,
                        task.out_stride * out_bytes, left < n_out ? left : n_out,
                        task.biases + i * kColumns};
    multiply_panel<Micro>(task, panel, target, i + 1 == task.n_panels);
  }
}

}  // namespace
}  // namespace sgc
