#include "attention_kernel.h"

namespace sgc {

extern constexpr AttentionKernel kAttentionPlain = kernel_of<Floats<Lanes<4>, float>>();
extern constexpr AttentionKernel kAttentionPlainBf16 = kernel_of<Floats<Lanes<4>, bf16>>();

}  // namespace sgc
