#if defined(__x86_64__)
#include "attention_kernel.h"

namespace sgc {

extern constexpr AttentionKernel kAttentionAvx2 = kernel_of<Floats<Lanes<8>, float>>();
extern constexpr AttentionKernel kAttentionAvx2Bf16 = kernel_of<Floats<Lanes<8>, bf16>>();

}  // namespace sgc
#endif
