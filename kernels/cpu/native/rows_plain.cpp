#define SGC_ROWS rows_plain
#include "rows.inc"
