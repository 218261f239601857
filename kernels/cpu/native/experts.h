// Mixtures of experts: which rows go to which expert, and how much each counts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "matmul.h"

namespace sgc {

// One layer's experts, laid out as kernels/cpu/program.py lays it out. logits, rows, inner, wide:
// buffers of the router's logits (fp32, [rows, n_experts]), and of one expert's rows: its input,
// what is between its products, and its output (fp32).
struct ExpertsStep {
  int32_t n_experts, n_chosen;
  int32_t normalizes;  // the weights of a row's experts sum to one
  Epilogue epilogue;   // of an expert's first product
  int32_t logits, rows, inner, wide;
  const Packed* const* into;  // [n_experts] each
  const Packed* const* out_of;
};

struct Routed {
  int64_t row;
  float weight;
};

// For each row the n_chosen experts of the highest probability, the softmax of its logits.
class Routing {
 public:
  // logits: row stride `stride` elements. The first of equals is chosen.
  Routing(const float* logits, int64_t stride, int64_t n_rows, const ExpertsStep& step);

  // An expert's rows, ascending.
  std::span<const Routed> of(int32_t expert) const {
    return {routed_.data() + starts_[expert], routed_.data() + starts_[expert + 1]};
  }

 private:
  std::vector<Routed> routed_;
  std::vector<int64_t> starts_;
};

}  // namespace sgc
