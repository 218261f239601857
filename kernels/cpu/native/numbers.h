// Number formats and plain memory.
#pragma once

#include <cstdint>
#include <cstring>

// Sources are compiled for different instruction sets and linked together. A function of a header
// that the compiler does not inline would be kept once, perhaps with instructions that this machine
// lacks: hence always inlined.
#define SGC_INLINE [[gnu::always_inline]] inline

namespace sgc {

enum class Format : int32_t { f32 = 0, bf16 = 1, i8 = 2 };

constexpr int64_t bytes_of(Format format) {
  return format == Format::f32 ? 4 : format == Format::bf16 ? 2 : 1;
}

struct bf16 {
  uint16_t bits;
};

SGC_INLINE float to_float(bf16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
SGC_INLINE float to_float(float x) { return x; }

// To the nearest, ties to even; a NaN stays one.
SGC_INLINE bf16 to_bf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16)};
}

// When large memory lies in huge pages: from the first write on, or once `gather_pages` was called.
enum class HugePages { at_once, gathered };

// Zeroed memory at a 64-byte boundary, in huge pages where it is large. Throws std::bad_alloc.
void* allocate(int64_t n_bytes, HugePages pages = HugePages::at_once);
void release(void* memory, int64_t n_bytes);

// Puts the next `n` pages of `HugePages::gathered` into huge pages; returns whether more are left.
// Other threads may use the memory, write it and release it meanwhile.
bool gather_pages(int64_t n);

}  // namespace sgc
