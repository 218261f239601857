// Products in fp32 with what every processor of an architecture has: SSE2, or NEON.
#include "matmul_kernel.h"

#define SGC_LANES 4
#define SGC_ROWS 6  // 12 sums, of 16 registers (NEON: 32)
#include "matmul_floats.h"

namespace sgc {
const Kernel* plain_kernel(Format weights) { return float_kernel(weights); }
}  // namespace sgc
