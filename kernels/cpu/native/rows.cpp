#include "rows.h"

#include "isa.h"

namespace sgc {

extern const RowFunctions rows_plain;
#if defined(__x86_64__)
extern const RowFunctions rows_avx2;
extern const RowFunctions rows_avx512;
#endif

const RowFunctions& row_functions() {
#if defined(__x86_64__)
  if (best() >= Isa::avx512) return rows_avx512;
  if (best() >= Isa::avx2) return rows_avx2;
#endif
  return rows_plain;
}

}  // namespace sgc
