// What becomes of sums: bias, activation, format, and the way to memory. A panel has two vectors of
// columns.
#pragma once

#include "matmul_kernel.h"
#include "matmul_vectors.h"

namespace sgc {
namespace {

constexpr int kColumns = 2 * kLanes;

// A panel's part of `out`.
struct Target {
  char* out;  // first row, first column
  int64_t stride_bytes;
  int64_t n_columns;  // of out: at most kColumns, or kLanes for pairs
  const float* biases;
};

// The vector at `column` of a row, as far as the row has columns.
template <class Number>
SGC_INLINE void put(Number* row, int64_t column, int64_t n_columns, Floats x) {
  if (column + kLanes <= n_columns) {
    store(row + column, x);
  } else if (column < n_columns) {
    Number whole[kLanes];
    store(whole, x);
    std::memcpy(row + column, whole, static_cast<size_t>(n_columns - column) * sizeof(Number));
  }
}

template <class Number>
SGC_INLINE Floats get(const Number* row, int64_t column, int64_t n_columns) {
  if (column + kLanes <= n_columns) return load(row + column);
  Number whole[kLanes] = {};
  if (column < n_columns) {
    std::memcpy(whole, row + column, static_cast<size_t>(n_columns - column) * sizeof(Number));
  }
  return load(whole);
}

template <class Number, class Write>
SGC_INLINE void each_row(const float* sums, int n_rows, const Target& to, Write&& write) {
  const Floats bias0 = load(to.biases), bias1 = load(to.biases + kLanes);
  for (int i = 0; i < n_rows; ++i, sums += kColumns) {
    Number* row = reinterpret_cast<Number*>(to.out + i * to.stride_bytes);
    write(row, load(sums) + bias0, load(sums + kLanes) + bias1);
  }
}

template <class Number, class Function>
void map(const float* sums, int n_rows, const Target& to, Function&& function) {
  each_row<Number>(sums, n_rows, to, [&](Number* row, Floats a, Floats b) {
    put(row, 0, to.n_columns, function(a));
    put(row, kLanes, to.n_columns, function(b));
  });
}

template <class Number, class Function>
void gate(const float* sums, int n_rows, const Target& to, Function&& function) {
  each_row<Number>(sums, n_rows, to, [&](Number* row, Floats a, Floats b) {
    put(row, 0, to.n_columns, function(a) * b);
  });
}

inline void add(const float* sums, int n_rows, const Target& to, float scale) {
  each_row<float>(sums, n_rows, to, [&](float* row, Floats a, Floats b) {
    put(row, 0, to.n_columns, get(row, 0, to.n_columns) + a * scale);
    put(row, kLanes, to.n_columns, get(row, kLanes, to.n_columns) + b * scale);
  });
}

template <class Number>
void finish_as(const float* sums, int n_rows, const Target& to, Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::swiglu:
      return gate<Number>(sums, n_rows, to, [](Floats x) { return silu(x); });
    case Epilogue::geglu_tanh:
      return gate<Number>(sums, n_rows, to, [](Floats x) { return gelu_tanh(x); });
    case Epilogue::silu:
      return map<Number>(sums, n_rows, to, [](Floats x) { return silu(x); });
    case Epilogue::gelu:
      return map<Number>(sums, n_rows, to, [](Floats x) { return gelu(x); });
    case Epilogue::gelu_tanh:
      return map<Number>(sums, n_rows, to, [](Floats x) { return gelu_tanh(x); });
    case Epilogue::relu:
      return map<Number>(sums, n_rows, to, [](Floats x) { return relu(x); });
    default:
      return map<Number>(sums, n_rows, to, [](Floats x) { return x; });
  }
}

// sums: [n_rows][kColumns], before the bias.
inline void finish(const float* sums, int n_rows, const Target& to, const Task& task) {
  if (task.epilogue == Epilogue::add) {
    add(sums, n_rows, to, task.scale);
  } else if (task.epilogue == Epilogue::store_f32 || task.out_format == Format::f32) {
    finish_as<float>(sums, n_rows, to, task.epilogue);
  } else {
    finish_as<bf16>(sums, n_rows, to, task.epilogue);
  }
}

inline int64_t bytes_of_out(const Task& task) {
  const bool is_wide = task.epilogue == Epilogue::add || task.epilogue == Epilogue::store_f32;
  return is_wide ? 4 : bytes_of(task.out_format);
}

}  // namespace
}  // namespace sgc
