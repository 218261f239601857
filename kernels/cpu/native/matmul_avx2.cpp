// Products in fp32 with the avx2 instructions.
#include "matmul_kernel.h"

#if defined(__x86_64__)

#define SGC_LANES 8
#define SGC_ROWS 6  // 12 sums, of 16 registers
#include "matmul_floats.h"

namespace sgc {
const Kernel* avx2_kernel(Format weights) { return float_kernel(weights); }
}  // namespace sgc

#else

namespace sgc {
const Kernel* avx2_kernel(Format) { return nullptr; }
}  // namespace sgc

#endif
