#include "matmul_pack.h"

#include <stdexcept>

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

}  // namespace

Sizes sized(Format format, const Matrix* weights, int n_weights, int64_t n_in, bool interleaved,
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
  const int64_t k = kernel.layout == Layout::pairs ? rounded_up(n_in, kPairsUnit) : n_in;
  sizes.panel_bytes = k * kernel.columns * bytes_of(format);
  sizes.n_panels = rounded_up(sizes.n_out, kernel.columns) / kernel.columns;
  int64_t total;
  if (__builtin_mul_overflow(sizes.n_panels, sizes.panel_bytes, &total)) {
    throw std::invalid_argument("the weights are too large");
  }
  return sizes;
}

void pack_weights(Format format, const Matrix* weights, const Sizes& sizes, const Kernel& kernel,
                  char* panels, Threads& threads) {
  threads.run(sizes.n_panels, [&](int64_t i, int) {
    char* to = panels + i * sizes.panel_bytes;
    if (format == Format::f32) {
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
