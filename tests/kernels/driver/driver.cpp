// Runs the kernels without Python, for machines and sanitizers that have none: every result is
// compared with plain loops in double. Exits with 1 where one is wrong.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "attend.h"
#include "isa.h"
#include "matmul.h"
#include "threads.h"

namespace {

using namespace sgc;

std::mt19937 random_bits(0);

void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("wrong: %s\n", what);
  std::exit(1);
}

// Numbers in a format's memory, and what they are.
struct Numbers {
  Format format;
  std::vector<float> singles;
  std::vector<bf16> halves;

  Numbers(Format format, size_t n, float size) : format(format) {
    std::normal_distribution<float> normal(0.0f, size);
    for (size_t i = 0; i < n; ++i) {
      const float x = normal(random_bits);
      if (format == Format::f32) {
        singles.push_back(x);
      } else {
        halves.push_back(to_bf16(x));
      }
    }
  }
  void* data() { return format == Format::f32 ? static_cast<void*>(singles.data()) : halves.data(); }
  double at(size_t i) const { return format == Format::f32 ? singles[i] : to_float(halves[i]); }
};

void check_threads(int n_threads) {
  Threads threads(n_threads);
  for (int round = 0; round < 3000; ++round) {
    const auto n = static_cast<int64_t>(random_bits() % 40);
    std::vector<int> counts(static_cast<size_t>(n));
    threads.run(n, [&](int64_t item, int) { ++counts[static_cast<size_t>(item)]; });
    for (int count : counts) check(count == 1, "an item is begun once");
  }
}

void check_products(Format format, Format packed_as, size_t n_rows, size_t n_in, size_t n_out,
                    Threads& threads) {
  Numbers x(format, n_rows * n_in, 1.0f);
  Numbers weights(format, n_out * n_in, 1.0f / std::sqrt(static_cast<float>(n_in)));
  Numbers biases(Format::f32, n_out, 1.0f);
  const Matrix matrix{weights.data(), static_cast<int64_t>(n_out)};
  const auto packed = Packed::make(format, packed_as, &matrix, 1, static_cast<int64_t>(n_in),
                                   biases.singles.data(), false, threads);
  std::vector<float> out(n_rows * n_out);
  packed->multiply(x.data(), static_cast<int64_t>(n_in), static_cast<int64_t>(n_rows),
                   Epilogue::store_f32, 1.0f, out.data(), static_cast<int64_t>(n_out), false,
                   threads);
  const double allowed = packed_as == Format::i8 ? 0.1 : 1e-4;
  for (size_t row = 0; row < n_rows; ++row)
    for (size_t column = 0; column < n_out; ++column) {
      double sum = biases.at(column);
      for (size_t k = 0; k < n_in; ++k) sum += x.at(row * n_in + k) * weights.at(column * n_in + k);
      check(std::abs(out[row * n_out + column] - sum) < allowed, "a product");
    }
}

// Rows that share a trunk, and a chunk of many new tokens.
struct Contexts {
  std::vector<int64_t> row_starts{0}, pages, page_starts{0};
  int64_t n_pages = 0;

  void add(int64_t n_shared, int64_t n_own, int64_t n_new) {
    for (int64_t i = 0; i < n_shared; ++i) pages.push_back(i);
    for (int64_t i = 0; i < n_own; ++i) pages.push_back(1000 + n_pages++ * 7 % 1000);
    page_starts.push_back(static_cast<int64_t>(pages.size()));
    row_starts.push_back(row_starts.back() + n_new);
  }
};

double attended(const HeadShape& shape, const Contexts& contexts, size_t row, int64_t token,
                int head, int i, const Numbers& q, const Numbers& k, const Numbers& v) {
  const int64_t* pages = contexts.pages.data() + contexts.page_starts[row];
  const int64_t n_pages = contexts.page_starts[row + 1] - contexts.page_starts[row];
  const int64_t last = n_pages - contexts.row_starts[row + 1] + token;
  const int64_t first = shape.window > 0 ? std::max<int64_t>(0, last + 1 - shape.window) : 0;
  const int kv = head / (shape.n_heads / shape.n_kv_heads);
  const auto dim = static_cast<size_t>(shape.head_dim);
  double sum = 0, total = 0;
  for (int64_t at = first; at <= last; ++at) {
    const auto page = static_cast<size_t>(pages[at] * shape.n_kv_heads + kv);
    double score = 0;
    for (size_t d = 0; d < dim; ++d)
      score += q.at(static_cast<size_t>(token * shape.n_heads + head) * dim + d) *
               k.at(page * dim + d);
    score *= shape.scale;
    if (shape.softcap > 0) score = shape.softcap * std::tanh(score / shape.softcap);
    sum += std::exp(score);
    total += std::exp(score) * v.at(page * dim + static_cast<size_t>(i));
  }
  return total / sum;
}

void check_attention(Format format, int head_dim, int window, float softcap, bool deterministic,
                     Threads& threads) {
  Contexts contexts;
  for (int64_t n_own : {1, 5, 40, 70, 3}) contexts.add(150, n_own, 1);
  contexts.add(0, 133, 70);
  contexts.add(0, 600, 2);
  HeadShape shape{};
  shape.n_heads = 4;
  shape.n_kv_heads = 2;
  shape.head_dim = shape.v_head_dim = head_dim;
  shape.format = shape.pool_format = format;
  shape.scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  shape.window = window;
  shape.softcap = softcap;
  const auto n_tokens = static_cast<size_t>(contexts.row_starts.back());
  const auto dim = static_cast<size_t>(head_dim);
  Numbers q(format, n_tokens * 4 * dim, 1.0f), k(format, 2000 * 2 * dim, 1.0f);
  Numbers v(format, 2000 * 2 * dim, 1.0f), out(format, n_tokens * 4 * dim, 0.0f);
  const Rows rows{static_cast<int64_t>(contexts.row_starts.size()) - 1, contexts.row_starts.data(),
                  contexts.pages.data(), contexts.page_starts.data()};
  const AttentionPlanPtr plan = plan_attention(rows, shape, threads.count(), deterministic);
  attend(*plan, shape, q.data(), 4 * head_dim, k.data(), v.data(), out.data(), threads);
  const double allowed = format == Format::f32 ? 1e-4 : 0.02;
  for (size_t row = 0; row + 1 < contexts.row_starts.size(); ++row)
    for (int64_t token = contexts.row_starts[row]; token < contexts.row_starts[row + 1]; ++token)
      for (int head = 0; head < 4; ++head)
        for (int i = 0; i < head_dim; i += 7) {
          const double right = attended(shape, contexts, row, token, head, i, q, k, v);
          const auto at = static_cast<size_t>(token * 4 + head) * dim + static_cast<size_t>(i);
          check(std::abs(out.at(at) - right) < allowed, "attention");
        }
}

}  // namespace

int main() {
  for (int n : {1, 2, 4}) check_threads(n);
  Threads threads(3);
  for (Format format : {Format::f32, Format::bf16})
    for (Format packed_as : {format, Format::i8})
      for (size_t n_rows : {1, 3, 17, 33})
        for (size_t n_in : {5, 64, 131})
          for (size_t n_out : {1, 40, 97})
            check_products(format, packed_as, n_rows, n_in, n_out, threads);
  for (Format format : {Format::f32, Format::bf16})
    for (int head_dim : {16, 80, 7})
      for (int window : {0, 50})
        for (bool deterministic : {false, true})
          check_attention(format, head_dim, window, window ? 20.0f : 0.0f, deterministic, threads);
  std::printf("right, instruction set %d\n", static_cast<int>(best()));
}
