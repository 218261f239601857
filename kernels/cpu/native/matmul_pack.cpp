#include "matmul_pack.h"

#include <cmath>
#include <stdexcept>
#include <vector>

namespace sgc {
namespace {

constexpr int64_t kMaxSide = int64_t{1} << 31;

int64_t rounded_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// Which output a panel's column is, in the product's order before interleaving; -1: none.
int64_t output_of(int64_t panel, int column, const Sizes& sizes, int columns) {
  if (!sizes.interleaved) {
    const int64_t output = panel * columns + column;
    return output < sizes.n_out ? output : -1;
  }
  const int half = columns / 2;
  const int64_t pair = panel * half + column % half, n_pairs = sizes.n_out / 2;
  return pair < n_pairs ? pair + (column < half ? 0 : n_pairs) : -1;
}

template <class Number>
const Number* row_of(const Matrix* weights, int64_t output, int64_t n_in) {
  for (; output >= weights->n_out; ++weights) output -= weights->n_out;
  return static_cast<const Number*>(weights->data) + output * n_in;
}

template <class Number, int group>
void pack_panel(const Matrix* weights, const Sizes& sizes, int64_t index, int columns, char* to) {
  Number* panel = reinterpret_cast<Number*>(to);
  for (int column = 0; column < columns; ++column) {
    const int64_t output = output_of(index, column, sizes, columns);
    if (output < 0) continue;  // zeros are there
    const Number* row = row_of<Number>(weights, output, sizes.n_in);
    for (int64_t k = 0; k < sizes.n_in; ++k) {
      panel[(k / group * columns + column) * group + k % group] = row[k];
    }
  }
}

// Writes an output's weights as integers, and returns their scale. What is not finite makes it NaN.
template <class Number>
float quantize(const Number* row, int64_t n, int8_t* to) {
  float most = 0.0f;
  bool finite = true;
  for (int64_t k = 0; k < n; ++k) {
    const float x = std::fabs(to_float(row[k]));
    most = x > most ? x : most;
    finite &= x - x == 0.0f;
  }
  // So that the inverse is finite.
  const float scale = (most > 1e-30f ? most : 1e-30f) / 127.0f, inverse = 1.0f / scale;
  for (int64_t k = 0; k < n; ++k) {
    const float x = finite ? std::nearbyint(to_float(row[k]) * inverse) : 0.0f;
    to[k] = static_cast<int8_t>(x > 127.0f ? 127.0f : x < -127.0f ? -127.0f : x);
  }
  return finite ? scale : std::nanf("");
}

template <class Number, int group>
void pack_panel_i8(const Matrix* weights, const Sizes& sizes, int64_t index, int columns,
                   char* to) {
  float* scales = reinterpret_cast<float*>(to);
  int32_t* sums = reinterpret_cast<int32_t*>(scales + columns);
  char* panel = to + head_bytes(columns);
  std::vector<int8_t> numbers(static_cast<size_t>(rounded_up(sizes.n_in, group)));
  for (int column = 0; column < columns; ++column) {
    const int64_t output = output_of(index, column, sizes, columns);
    if (output < 0) continue;  // zeros are there
    const Number* row = row_of<Number>(weights, output, sizes.n_in);
    scales[column] = quantize(row, sizes.n_in, numbers.data());
    for (int64_t k = 0; k < sizes.n_in; ++k) sums[column] += numbers[static_cast<size_t>(k)];
    for (int64_t k = 0; k < sizes.n_in; k += group)
      std::memcpy(panel + (k * columns + column * group), numbers.data() + k, group);
  }
}

template <class Number>
void pack_panel_i8(const Matrix* weights, const Sizes& sizes, int64_t index, const Kernel& kernel,
                   char* to) {
  if (kernel.layout == Layout::quads) {
    pack_panel_i8<Number, 4>(weights, sizes, index, kernel.columns, to);
  } else {
    pack_panel_i8<Number, 1>(weights, sizes, index, kernel.columns, to);
  }
}

int64_t panel_bytes(Format packed_as, int64_t n_in, const Kernel& kernel) {
  const int64_t unit = kernel.layout == Layout::pairs   ? kPairsUnit
                       : kernel.layout == Layout::quads ? 4
                                                        : 1;
  const int64_t numbers = rounded_up(n_in, unit) * kernel.columns * bytes_of(packed_as);
  constexpr int64_t kLine = 64;
  return packed_as == Format::i8 ? head_bytes(kernel.columns) + rounded_up(numbers, kLine) : numbers;
}

}  // namespace

Sizes sized(Format packed_as, const Matrix* weights, int n_weights, int64_t n_in, bool interleaved,
            const Kernel& kernel) {
  if (n_weights < 1 || weights == nullptr) throw std::invalid_argument("no weights to pack");
  if (n_in < 1 || n_in > kMaxSide) throw std::invalid_argument("n_in is out of range");
  if (interleaved && (n_weights != 2 || weights[0].n_out != weights[1].n_out)) {
    throw std::invalid_argument("interleaving takes two weights of one size");
  }
  Sizes sizes{0, n_in, 0, 0, interleaved};
  for (int i = 0; i < n_weights; ++i) {
    if (weights[i].data == nullptr) throw std::invalid_argument("a weight has no data");
    if (weights[i].n_out < 1 || weights[i].n_out > kMaxSide - sizes.n_out) {
      throw std::invalid_argument("n_out is out of range");
    }
    sizes.n_out += weights[i].n_out;
  }
  sizes.panel_bytes = panel_bytes(packed_as, n_in, kernel);
  sizes.n_panels = rounded_up(sizes.n_out, kernel.columns) / kernel.columns;
  int64_t total;
  if (__builtin_mul_overflow(sizes.n_panels, sizes.panel_bytes, &total)) {
    throw std::invalid_argument("the weights are too large");
  }
  return sizes;
}

void pack_weights(Format format, Format packed_as, const Matrix* weights, const Sizes& sizes,
                  const Kernel& kernel, char* panels, Threads& threads) {
  threads.run(sizes.n_panels, [&](int64_t i, int) {
    char* to = panels + i * sizes.panel_bytes;
    if (packed_as == Format::i8) {
      format == Format::f32 ? pack_panel_i8<float>(weights, sizes, i, kernel, to)
                            : pack_panel_i8<bf16>(weights, sizes, i, kernel, to);
    } else if (format == Format::f32) {
      pack_panel<float, 1>(weights, sizes, i, kernel.columns, to);
    } else if (kernel.layout == Layout::single) {
      pack_panel<bf16, 1>(weights, sizes, i, kernel.columns, to);
    } else {
      pack_panel<bf16, 2>(weights, sizes, i, kernel.columns, to);
    }
  });
}

void pack_biases(const float* biases, const Sizes& sizes, const Kernel& kernel, float* packed) {
  if (biases == nullptr) return;
  for (int64_t i = 0; i < sizes.n_panels * kernel.columns; ++i) {
    const int64_t panel = i / kernel.columns;
    const auto column = static_cast<int>(i % kernel.columns);
    const int64_t output = output_of(panel, column, sizes, kernel.columns);
    if (output >= 0) packed[i] = biases[output];
  }
}

}  // namespace sgc
