// Which instruction sets this processor has, and which one is used.
#pragma once

#include <cstdint>

namespace sgc {

// From the least to the most. A path is used only if the processor, the operating system and this
// library's build have it. `plain` is compiled for the architecture's baseline (NEON on arm64).
enum class Isa : int32_t { plain = 0, avx2 = 1, avx512 = 2, avx512_bf16 = 3, amx_bf16 = 4 };

bool has(Isa isa);  // built in, and the machine can run it
Isa best();         // the highest that it has, or the one set by `limit`

// For tests: no higher than `isa`. Returns false if the machine lacks it.
bool limit(Isa isa);

}  // namespace sgc
