// Dropout masks as a function of a counter, bit-identical to clops_sweep/learning/networks/dropout.py.
//
// Word c of a stream with keys (k0, k1) is mix(c + k0, k1). Draw d of an instance uses the words 1536 d ... 1536 d +
// 1535, one for two units: even units use its low half, odd units its high half. A unit is dropped if this signed
// number is below a threshold.
#pragma once

#include "shapes.hpp"
#include "vector.hpp"

namespace clops::CLOPS_VARIANT {

constexpr float kScale = 1.0f / 0.9f;

// The factor of kept units.
inline float scale_of(const Keys* keys) { return keys ? kScale : 1.0f; }

// The words of counters to which the first key has been added.
CLOPS_INLINE U mixed(U x, U second) {
  x ^= x >> 16;
  x *= 0x7FEB352Du;
  x ^= second;
  x ^= x >> 15;
  x *= 0x846CA68Bu;
  x ^= x >> 16;
  return x;
}

class Masks {
 public:
  // One draw per lane; without keys nothing is dropped.
  Masks(const Keys* keys, const std::int64_t (&draws)[kLanes])
      : first_{}, second_{}, threshold_(I{} + (keys ? kThreshold : INT32_MIN)) {
    if (!keys) return;
    second_ += keys->second;
    for (int l = 0; l < kLanes; ++l) first_[l] = static_cast<std::uint32_t>(draws[l]) * kWords + keys->first;
  }

  // Keeps or drops units 2 w and 2 w + 1.
  CLOPS_INLINE void apply(int w, V& even, V& odd) const {
    const U word = random(w);
    // A unit's 16 bits are the upper half of the compared number, so the lower half has no effect.
    even = reinterpret_cast<I>(word << 16) < threshold_ ? V{} : even;
    odd = reinterpret_cast<I>(word) < threshold_ ? V{} : odd;
  }

 private:
  static constexpr std::int32_t kThreshold = (-32768 + 6554) * 65536;

  CLOPS_INLINE U random(int w) const { return mixed(first_ + static_cast<std::uint32_t>(w), second_); }

  U first_, second_;
  I threshold_;
};

}  // namespace clops::CLOPS_VARIANT
