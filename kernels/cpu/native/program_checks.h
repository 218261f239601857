// Refuses programs and steps that would read or write where they may not.
#pragma once

#include <vector>

#include "program.h"

namespace sgc {

void check_program(const std::vector<OpRecord>& ops, const std::vector<BufferRecord>& buffers);
void check_step(const Step& step, const std::vector<OpRecord>& ops);

}  // namespace sgc
