#include "machine_limits.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "abi.h"
#include "isa.h"
#include "numbers.h"

namespace sgc {

int64_t spin_plain(int64_t, float*);
#if defined(__x86_64__)
int64_t spin_avx2(int64_t, float*);
int64_t spin_avx512(int64_t, float*);
int64_t spin_avx512_bf16(int64_t, float*);
int64_t spin_amx_bf16(int64_t, float*);
#endif

float read_all(const void* memory, int64_t n_bytes) {
  typedef float Line __attribute__((vector_size(64)));
  const auto* lines = static_cast<const Line*>(memory);
  Line sums[4] = {};
  for (int64_t i = 0; i + 4 <= n_bytes / 64; i += 4)
    for (int64_t k = 0; k < 4; ++k) {
      __builtin_prefetch(lines + i + k + 64);
      sums[k] += lines[i + k];
    }
  return sums[0][0] + sums[1][1] + sums[2][2] + sums[3][3];
}

Spin fp32_spin() {
#if defined(__x86_64__)
  if (best() >= Isa::avx512) return spin_avx512;
  if (best() >= Isa::avx2) return spin_avx2;
#endif
  return spin_plain;
}

Spin bf16_spin() {
#if defined(__x86_64__)
  if (best() >= Isa::amx_bf16) return spin_amx_bf16;
  if (best() >= Isa::avx512_bf16) return spin_avx512_bf16;
#endif
  return fp32_spin();
}

namespace {

using Clock = std::chrono::steady_clock;

// The most that `work`, which returns an amount, does a second in `seconds`.
template <class Work>
double best_rate(double seconds, Work&& work) {
  double best = 0;
  const auto start = Clock::now();
  for (auto now = start; std::chrono::duration<double>(now - start).count() < seconds;) {
    const double amount = work();
    const auto end = Clock::now();
    best = std::max(best, amount / std::chrono::duration<double>(end - now).count());
    now = end;
  }
  return best;
}

double flops(Spin spin, double seconds, Threads& threads) {
  const int n = threads.count();
  std::vector<float> sinks(16 * n);
  std::vector<int64_t> made(n);
  return best_rate(seconds, [&] {
    threads.run(n, [&](int64_t item, int) { made[item] = spin(200'000, &sinks[16 * item]); });
    int64_t sum = 0;
    for (int64_t each : made) sum += each;
    return 2.0 * sum;
  });
}

double bytes(int64_t n_bytes, double seconds, Threads& threads) {
  void* memory = allocate(n_bytes);
  std::vector<float> sinks(256);
  const int64_t part = n_bytes / 256;
  // What was never written is one page of zeros for all of it, which lies in the caches.
  threads.run(256, [&](int64_t item, int) {
    std::memset(static_cast<char*>(memory) + item * part, 1, part);
  });
  const double rate = best_rate(seconds, [&] {
    threads.run(256, [&](int64_t item, int) {
      sinks[item] = read_all(static_cast<const char*>(memory) + item * part, part);
    });
    return static_cast<double>(n_bytes);
  });
  release(memory, n_bytes);
  return rate;
}

}  // namespace
}  // namespace sgc

// limits: bf16 and fp32 operations a second, and bytes read a second from `n_bytes` of memory.
SGC_EXPORT int32_t sgc_limits(int64_t n_bytes, double seconds, sgc::Threads* threads,
                              double limits[3]) {
  return sgc::guarded(-1, [&] {
    limits[0] = sgc::flops(sgc::bf16_spin(), seconds, *threads);
    limits[1] = sgc::flops(sgc::fp32_spin(), seconds, *threads);
    limits[2] = sgc::bytes(n_bytes, seconds, *threads);
    return 0;
  });
}
