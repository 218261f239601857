// Products in fp32 with the avx512 instructions.
#include "matmul_kernel.h"

#if defined(__x86_64__)

#define SGC_LANES 16
#define SGC_ROWS 12  // 24 sums, of 32 registers
#include "matmul_floats.h"

namespace sgc {
const Kernel* avx512_kernel(Format weights) { return float_kernel(weights); }
}  // namespace sgc

#else

namespace sgc {
const Kernel* avx512_kernel(Format) { return nullptr; }
}  // namespace sgc

#endif
