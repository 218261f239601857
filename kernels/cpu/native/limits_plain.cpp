#define SGC_SPIN spin_plain
#define SGC_WIDTH 4
#include "limits_spin.inc"
