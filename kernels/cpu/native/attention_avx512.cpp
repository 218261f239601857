#if defined(__x86_64__)
#include "attention_kernel.h"

namespace sgc {

extern constexpr AttentionKernel kAttentionAvx512 = kernel_of<Floats<Lanes<16>, float>>();
extern constexpr AttentionKernel kAttentionAvx512Bf16 = kernel_of<Floats<Lanes<16>, bf16>>();

}  // namespace sgc
#endif
