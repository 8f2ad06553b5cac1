// Frames of kLanes instances, transposed so that each sample is one vector.
#pragma once

#include "shapes.hpp"
#include "vector.hpp"

namespace clops::CLOPS_VARIANT {

// A group of at most kLanes of many instances. Unused lanes repeat instances of the group, so that their numbers are
// harmless; their contributions to sums are masked out.
struct Group {
  int first, count;

  CLOPS_INLINE int at(int lane) const { return first + lane % count; }

  // 1 for lanes with an instance, 0 for the others.
  V present() const {
    V result = {};
    for (int l = 0; l < count; ++l) result[l] = 1.0f;
    return result;
  }
};

inline int groups_of(int count) { return (count + kLanes - 1) / kLanes; }

inline Group group_of(int count, int index) {
  const int first = index * kLanes;
  return {first, count - first < kLanes ? count - first : kLanes};
}

CLOPS_INLINE V samples(const float* from) { return load(from); }

CLOPS_INLINE V samples(const std::int16_t* from) {
  typedef std::int16_t Short __attribute__((vector_size(2 * kLanes)));
  Short stored;
  std::memcpy(&stored, from, sizeof stored);
  return __builtin_convertvector(stored, V);
}

// Writes to[t], t < kFrame: sample t of each instance, (stored * gain + offset) + noise.
template <class Stored>
inline void transpose_frames(const Stored* stored, const Instances& from, Group group, V* to) {
  const Stored* frame[kLanes];
  const float* noise[kLanes];
  float gain[kLanes], offset[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    const std::int64_t row = from.rows[group.at(l)];
    frame[l] = stored + row * kFrame;
    noise[l] = from.noise ? from.noise + static_cast<std::ptrdiff_t>(group.at(l)) * kFrame : nullptr;
    gain[l] = from.frames.gain ? from.frames.gain[row] : 1.0f;
    offset[l] = from.frames.gain ? from.frames.offset[row] : 0.0f;
  }
  const bool scaled = from.frames.gain != nullptr;
  int t = 0;
  for (; t + kLanes <= kFrame; t += kLanes) {
    V block[kLanes];
    CLOPS_UNROLL for (int l = 0; l < kLanes; ++l) {
      block[l] = samples(frame[l] + t);
      if (scaled) block[l] = block[l] * gain[l] + offset[l];
    }
    if (from.noise) {
      for (int l = 0; l < kLanes; ++l) block[l] += load(noise[l] + t);
    }
    transpose(block);
    CLOPS_UNROLL for (int l = 0; l < kLanes; ++l) to[t + l] = block[l];
  }
  for (; t < kFrame; ++t) {
    for (int l = 0; l < kLanes; ++l) {
      float value = static_cast<float>(frame[l][t]);
      if (scaled) value = value * gain[l] + offset[l];
      if (from.noise) value += noise[l][t];
      to[t][l] = value;
    }
  }
}

inline void load_frames(const Instances& from, Group group, V* to) {
  if (from.frames.floats) {
    transpose_frames(from.frames.floats, from, group, to);
  } else {
    transpose_frames(from.frames.integers, from, group, to);
  }
}

}  // namespace clops::CLOPS_VARIANT
