// Exports of step programs; kernels/cpu/program.py calls them.

#include "abi.h"
#include "program.h"

using sgc::guarded;

SGC_EXPORT sgc::Program* sgc_program_new(const sgc::OpRecord* ops, int64_t n_ops,
                                         const sgc::BufferRecord* buffers, int64_t n_buffers,
                                         int32_t deterministic, sgc::Threads* threads) {
  return guarded<sgc::Program*>(nullptr, [&] {
    return new sgc::Program({ops, ops + n_ops}, {buffers, buffers + n_buffers}, deterministic != 0,
                            *threads);
  });
}

SGC_EXPORT void sgc_program_free(sgc::Program* program) { delete program; }

SGC_EXPORT int32_t sgc_program_bind(sgc::Program* program, int32_t layer, void* k_pool,
                                    void* v_pool) {
  return guarded(-1, [&] {
    program->bind(layer, k_pool, v_pool);
    return 0;
  });
}

SGC_EXPORT int32_t sgc_program_run(sgc::Program* program, const sgc::Step* step, float* logits) {
  return guarded(-1, [&] {
    program->run(*step, logits);
    return 0;
  });
}

SGC_EXPORT int64_t sgc_program_bytes(const sgc::Program* program) {
  return guarded<int64_t>(-1, [&] { return program->workspace_bytes(); });
}

// The records' sizes, by which the caller checks that it lays them out alike.
SGC_EXPORT void sgc_program_layout(int64_t sizes[7]) {
  sizes[0] = sizeof(sgc::OpRecord);
  sizes[1] = sizeof(sgc::BufferRecord);
  sizes[2] = sizeof(sgc::Step);
  sizes[3] = sizeof(sgc::HeadShape);
  sizes[4] = sizeof(sgc::HeadsStep);
  sizes[5] = sizeof(sgc::ExpertsStep);
  sizes[6] = sizeof(sgc::AdaptStep);
}
