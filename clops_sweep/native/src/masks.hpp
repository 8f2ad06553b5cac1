// Dropout masks as a function of a counter: those of clops_sweep/learning/networks/dropout.py, bit for bit.
//
// The word c of a stream with keys (k0, k1) is mix(c + k0, k1); the draw d of an instance owns the words
// 1536 d ... 1536 d + 1535, one for two units. Even units take the low half of the word, odd units the high one, and are
// dropped when it is below a threshold as a signed number.
#pragma once

#include "shapes.hpp"
#include "vector.hpp"

namespace clops::CLOPS_VARIANT {

constexpr float kScale = 1.0f / 0.9f;

// What is kept is multiplied by this.
inline float scale_of(const Keys* keys) { return keys ? kScale : 1.0f; }

class Masks {
 public:
  // One draw a lane; without keys nothing is dropped.
  Masks(const Keys* keys, const std::int64_t (&draws)[kLanes])
      : first_{}, second_{}, threshold_(I{} + (keys ? kThreshold : INT32_MIN)) {
    if (!keys) return;
    second_ += keys->second;
    for (int l = 0; l < kLanes; ++l) first_[l] = static_cast<std::uint32_t>(draws[l]) * kWords + keys->first;
  }

  // Keeps or drops the units 2 w and 2 w + 1.
  CLOPS_INLINE void apply(int w, V& even, V& odd) const {
    const U word = random(w);
    // A unit's 16 bits decide as the upper half of 32: what is below them does not matter.
    even = reinterpret_cast<I>(word << 16) < threshold_ ? V{} : even;
    odd = reinterpret_cast<I>(word) < threshold_ ? V{} : odd;
  }

 private:
  static constexpr std::int32_t kThreshold = (-32768 + 6554) * 65536;

  CLOPS_INLINE U random(int w) const {
    U x = first_ + static_cast<std::uint32_t>(w);
    x ^= x >> 16;
    x *= 0x7FEB352Du;
    x ^= second_;
    x ^= x >> 15;
    x *= 0x846CA68Bu;
    x ^= x >> 16;
    return x;
  }

  U first_, second_;
  I threshold_;
};

}  // namespace clops::CLOPS_VARIANT
