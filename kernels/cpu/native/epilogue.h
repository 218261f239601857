// What a product does with its sums, by name.
#pragma once

#include <cstdint>

namespace sgc {

// What becomes of a product's sums (fp32) after the bias is added.
enum class Epilogue : int32_t {
  store = 0,   // out = sums, in the activations' format
  store_f32,   // out = sums, fp32 (logits)
  add,         // out += scale * sums; out is fp32 (the residual stream)
  swiglu,      // columns are pairs (gate, up): out = silu(gate) * up; half as many columns
  geglu_tanh,  // the same with gelu (tanh approximation)
  silu,
  gelu,        // erf
  gelu_tanh,
  relu,
};

constexpr bool is_paired(Epilogue e) { return e == Epilogue::swiglu || e == Epilogue::geglu_tanh; }

}  // namespace sgc
