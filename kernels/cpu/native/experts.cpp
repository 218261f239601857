#include "experts.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sgc {
namespace {

// p = softmax(logits). An expert that is chosen is marked by a probability that none can have.
constexpr float kTaken = -1.0f;

void softmax(const float* logits, std::vector<float>& p) {
  const float highest = *std::max_element(logits, logits + p.size());
  float sum = 0.0f;
  for (size_t i = 0; i < p.size(); ++i) sum += p[i] = std::exp(logits[i] - highest);
  for (float& one : p) one /= sum;
}

// The first that compares with none (NaN) counts as likeliest, so that some expert always is.
int32_t take_likeliest(std::vector<float>& p, float* probability) {
  size_t best = 0;
  while (p[best] == kTaken) ++best;
  for (size_t i = best + 1; i < p.size(); ++i)
    if (p[i] > p[best]) best = i;
  *probability = std::exchange(p[best], kTaken);
  return static_cast<int32_t>(best);
}

}  // namespace

Routing::Routing(const float* logits, int64_t stride, int64_t n_rows, const ExpertsStep& step)
    : routed_(n_rows * step.n_chosen), starts_(step.n_experts + 1) {
  const int64_t k = step.n_chosen;
  std::vector<float> p(step.n_experts), weights(n_rows * k);
  std::vector<int32_t> chosen(n_rows * k);
  for (int64_t row = 0; row < n_rows; ++row) {
    softmax(logits + row * stride, p);
    float* own = weights.data() + row * k;
    for (int64_t i = 0; i < k; ++i) chosen[row * k + i] = take_likeliest(p, own + i);
    float sum = 0.0f;
    for (int64_t i = 0; i < k; ++i) sum += own[i];
    if (step.normalizes)
      for (int64_t i = 0; i < k; ++i) own[i] /= sum;
  }
  for (int32_t expert : chosen) ++starts_[expert + 1];
  for (int32_t i = 0; i < step.n_experts; ++i) starts_[i + 1] += starts_[i];
  std::vector<int64_t> next(starts_.begin(), starts_.end() - 1);
  for (int64_t i = 0; i < n_rows * k; ++i) routed_[next[chosen[i]]++] = {i / k, weights[i]};
}

}  // namespace sgc
