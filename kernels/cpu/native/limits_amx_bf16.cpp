#if defined(__x86_64__)
// Never run on the machines at hand, none of which has these units.
#include <cstdint>
#include <cstring>
#include <immintrin.h>

namespace sgc {

int64_t spin_amx_bf16(int64_t n_rounds, float* sink) {
  struct alignas(64) Config {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t bytes[16] = {};
    uint8_t rows[16] = {};
  } config;
  for (int tile = 0; tile < 6; ++tile) {
    config.bytes[tile] = 64;
    config.rows[tile] = 16;
  }
  _tile_loadconfig(&config);
  alignas(64) static const uint16_t ones[16 * 32] = {};
  _tile_loadd(4, ones, 64);
  _tile_loadd(5, ones, 64);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t round = 0; round < n_rounds; ++round) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  alignas(64) float out[16 * 16];
  _tile_stored(0, out, 64);
  *sink += out[0];
  _tile_release();
  return n_rounds * 4 * 16 * 16 * 32;
}

}  // namespace sgc
#endif
