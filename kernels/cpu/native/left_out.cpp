// What stands in for instruction sets that a build leaves out, so that the rest links. None of it is
// ever used: `best()` is a set that is built in.
#include "attention_item.h"
#include "heads_kernel.h"
#include "isa.h"
#include "machine_limits.h"
#include "matmul_kernel.h"
#include "rows.h"

namespace sgc {

#if !SGC_HAS_SET(0)
extern constexpr AttentionKernel kAttentionPlain{}, kAttentionPlainBf16{};
extern constexpr TokenHeads kHeadsPlain[2]{};
extern constexpr RowFunctions rows_plain{};
const Kernel* plain_kernel(Format) { return nullptr; }
int64_t spin_plain(int64_t, float*) { return 0; }
#endif

#if !SGC_HAS_SET(1)
const Kernel* avx2_kernel(Format) { return nullptr; }
#endif
#if !SGC_HAS_SET(2)
const Kernel* avx512_kernel(Format) { return nullptr; }
#endif
#if !SGC_HAS_SET(3)
const Kernel* avx512_bf16_kernel() { return nullptr; }
const Kernel* avx512_bf16_i8_kernel() { return nullptr; }
#endif
#if !SGC_HAS_SET(4)
const Kernel* amx_bf16_kernel() { return nullptr; }
#endif

#if defined(__x86_64__)
#if !SGC_HAS_SET(1)
extern constexpr AttentionKernel kAttentionAvx2{}, kAttentionAvx2Bf16{};
extern constexpr TokenHeads kHeadsAvx2[2]{};
extern constexpr RowFunctions rows_avx2{};
int64_t spin_avx2(int64_t, float*) { return 0; }
#endif
#if !SGC_HAS_SET(2)
extern constexpr AttentionKernel kAttentionAvx512{}, kAttentionAvx512Bf16{};
extern constexpr TokenHeads kHeadsAvx512[2]{};
extern constexpr RowFunctions rows_avx512{};
int64_t spin_avx512(int64_t, float*) { return 0; }
#endif
#if !SGC_HAS_SET(3)
extern constexpr AttentionKernel kAttentionBf16Dots{};
int64_t spin_avx512_bf16(int64_t, float*) { return 0; }
#endif
#if !SGC_HAS_SET(4)
int64_t spin_amx_bf16(int64_t, float*) { return 0; }
#endif
#endif

}  // namespace sgc
