#define SGC_SPIN spin_avx512
#define SGC_WIDTH 16
#include "limits_spin.inc"
