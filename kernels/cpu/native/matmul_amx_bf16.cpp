// placeholder
#include "matmul_kernel.h"
namespace sgc {
const Kernel* amx_bf16_kernel() { return avx512_bf16_kernel(); }
}
