#define SGC_ROWS rows_avx2
#include "rows.inc"
