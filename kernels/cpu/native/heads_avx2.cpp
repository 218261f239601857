#include "heads_kernel.h"

namespace sgc {

extern constexpr TokenHeads kHeadsAvx2[2] = {token_heads<float>, token_heads<bf16>};

}  // namespace sgc
