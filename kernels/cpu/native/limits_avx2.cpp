#define SGC_SPIN spin_avx2
#define SGC_WIDTH 8
#include "limits_spin.inc"
