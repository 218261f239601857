#include "isa.h"

#include <cstdlib>
#include <atomic>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace sgc {
namespace {

#if defined(__x86_64__)

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  Registers r;
  if (!__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d)) return {};
  return r;
}

bool has_bits(uint64_t value, uint64_t bits) { return (value & bits) == bits; }
constexpr uint64_t bit(int i) { return uint64_t{1} << i; }

// Which registers the operating system saves.
uint64_t saved_state() {
  if (!has_bits(cpuid(1).c, bit(27))) return 0;  // OSXSAVE
  unsigned low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

// Linux gives a process the tile registers only if it asks.
bool may_use_tiles() {
#if defined(__linux__)
  constexpr long kArchReqXcompPerm = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kTileData) == 0;
#else
  return false;
#endif
}

Isa detect() {
  const Registers one = cpuid(1), seven = cpuid(7), more = cpuid(7, 1);
  const uint64_t saved = saved_state();
  const bool has_avx2 = has_bits(saved, bit(1) | bit(2))                       // xmm, ymm
                        && has_bits(one.c, bit(12) | bit(28) | bit(29))        // FMA, AVX, F16C
                        && has_bits(seven.b, bit(3) | bit(5) | bit(8));        // BMI, AVX2, BMI2
  if (!has_avx2) return Isa::plain;
  const bool has_avx512 = has_bits(saved, bit(5) | bit(6) | bit(7))            // zmm and masks
                          && has_bits(seven.b, bit(16) | bit(17) | bit(30) | bit(31));  // F DQ BW VL
  if (!has_avx512) return Isa::avx2;
  if (!has_bits(more.a, bit(5)) || !has_bits(seven.c, bit(11))) return Isa::avx512;  // BF16, VNNI
  const bool has_tiles = has_bits(saved, bit(17) | bit(18)) && has_bits(seven.d, bit(22) | bit(24));
  // Tiles have never run on a machine at hand, so they are used only where they are asked for.
  const bool is_asked = std::getenv("SGC_CPU_AMX") != nullptr;
  return is_asked && has_tiles && may_use_tiles() ? Isa::amx_bf16 : Isa::avx512_bf16;
}

#else

Isa detect() { return Isa::plain; }

#endif

Isa machine() {
  static const Isa found = detect();
  return found;
}

std::atomic<Isa> highest{Isa::amx_bf16};

}  // namespace

bool has(Isa isa) {
  return Isa::plain <= isa && isa <= machine() && SGC_HAS_SET(static_cast<int>(isa));
}

Isa best() {
  static constexpr Isa down[] = {Isa::amx_bf16, Isa::avx512_bf16, Isa::avx512, Isa::avx2,
                                 Isa::plain};
  for (Isa isa : down)
    if (isa <= highest.load() && has(isa)) return isa;
  return Isa::none;
}

bool limit(Isa isa) {
  if (!has(isa)) return false;
  highest.store(isa);
  return true;
}

}  // namespace sgc
