// The running softmax: weights of a tile's keys, and states that are merged and finished. Each is
// one function that is never inlined, so that all callers round alike.
#pragma once

#include "attention_product.h"

namespace sgc {
namespace {

constexpr float kLog2E = 1.4426950408889634f;

struct State {
  float* values;  // [padded(v_head_dim)]
  float* sums;    // [kSumLanes]
  float* most;    // the largest score, in powers of two
};

inline State state_at(float* states, int64_t index, const HeadShape& shape) {
  float* at = states + index * state_floats(shape);
  const int64_t width = padded(shape.v_head_dim);
  return {at, at + width, at + width + kSumLanes};
}

inline void clear(State state, const HeadShape& shape) {
  std::memset(state.values, 0, 4 * static_cast<size_t>(state_floats(shape)));
  *state.most = -__builtin_inff();
}

// By which a state is scaled when its largest score becomes `most`.
inline float factor(float old_most, float most) {
  return old_most == most ? 1.0f : old_most == -__builtin_inff() ? 0.0f : exp2_of(old_most - most);
}

// Scores of 64 keys, of which [from, end) are seen, become packed weights; the rest weigh nothing.
// Updates the state's sums and largest score, and returns the factor for its values.
template <class Math>
__attribute__((noinline)) float weigh(const float* scores, int from, int end,
                                      const HeadShape& shape, State state, float* weights) {
  using L = typename Math::Lanes;
  constexpr int n = kTileKeys / L::width;
  constexpr float none = -__builtin_inff();
  typename L::F x[n];
  auto most = all<L>(none);
  for (int i = 0; i < n; ++i) {
    x[i] = load<L>(scores + i * L::width);
    if (shape.softcap > 0.0f) {
      const auto cap = all<L>(shape.softcap * kLog2E);
      x[i] = tanh<L>(x[i] * all<L>(shape.scale / shape.softcap)) * cap;
    } else {
      x[i] = x[i] * all<L>(shape.scale * kLog2E);
    }
    if (from > 0 || end < kTileKeys) {
      const auto key = counted<L>() + i * L::width;
      x[i] = ((key >= from) & (key < end)) ? x[i] : all<L>(none);
    }
    most = at_least(x[i], most);
  }
  const float old_most = *state.most;
  const float tile_most = largest<L>(most);
  const float new_most = tile_most > old_most ? tile_most : old_most;
  const float scaled = factor(old_most, new_most);
  const auto least = all<L>(new_most == none ? 0.0f : new_most);
  typename L::F sums[kSumLanes / L::width] = {};
  for (int i = 0; i < n; ++i) {
    x[i] = exp2<L>(x[i] - least);
    sums[i % (kSumLanes / L::width)] += x[i];
  }
  for (int i = 0; i < kSumLanes / L::width; ++i) {
    const auto old = load<L>(state.sums + i * L::width);
    store<L>(state.sums + i * L::width, fma(old, all<L>(scaled), sums[i]));
  }
  *state.most = new_most;
  Math::pack_weights(x, weights);
  return scaled;
}

// Adds the state of later keys to `total`.
template <class Math>
__attribute__((noinline)) void merge_states(State total, State later, const HeadShape& shape) {
  using L = typename Math::Lanes;
  const float most = *later.most > *total.most ? *later.most : *total.most;
  const auto a = all<L>(factor(*total.most, most)), b = all<L>(factor(*later.most, most));
  const int64_t n = padded(shape.v_head_dim) + kSumLanes;  // the sums follow the values
  for (int64_t i = 0; i < n; i += L::width) {
    const auto part = load<L>(later.values + i) * b;
    store<L>(total.values + i, fma(load<L>(total.values + i), a, part));
  }
  *total.most = most;
}

// Divides by the sum of weights, to which a sink adds its own.
template <class Math>
__attribute__((noinline)) void finish(State state, const HeadShape& shape, int head,
                                      typename Math::Element* out) {
  float sum = 0.0f;
  for (int i = 0; i < kSumLanes; ++i) sum += state.sums[i];
  float scaled = 1.0f;
  if (shape.sinks) {
    const float sink = shape.sinks[head] * kLog2E;
    const float most = sink > *state.most ? sink : *state.most;
    scaled = factor(*state.most, most);
    sum = sum * scaled + factor(sink, most);
  }
  const float each = scaled / sum;
  for (int i = 0; i < shape.v_head_dim; ++i) narrow(state.values[i] * each, out + i);
}

}  // namespace
}  // namespace sgc
