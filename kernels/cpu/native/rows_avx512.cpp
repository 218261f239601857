#define SGC_ROWS rows_avx512
#include "rows.inc"
