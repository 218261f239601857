// Which instruction sets this processor has, and which one is used.
#pragma once

#include <cstdint>

namespace sgc {

// From the least to the most. avx512_bf16 includes VNNI, which every processor with it has. A path is used only if the processor, the operating system and this
// library's build have it. `plain` is compiled for the architecture's baseline (NEON on arm64).
enum class Isa : int32_t { none = -1, plain = 0, avx2 = 1, avx512 = 2, avx512_bf16 = 3, amx_bf16 = 4 };

bool has(Isa isa);  // built in, and the machine can run it
Isa best();         // the highest that it has, or the one set by `limit`; `none` of them

// Which are built in, by bits: the sources of the others are left out (kernels/cpu/sets.py).
#if !defined(SGC_SETS)
#define SGC_SETS 31
#endif
#define SGC_HAS_SET(isa) (SGC_SETS >> (isa) & 1)

// For tests: no higher than `isa`. Returns false if the machine lacks it.
bool limit(Isa isa);

}  // namespace sgc
