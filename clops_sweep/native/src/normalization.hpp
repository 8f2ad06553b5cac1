// Batch norm, pooling, ReLU and dropout behind a convolution: one pass forward, one or two backward.
//
// z is a convolution's output by parity, [2][outputs][pairs]; h the block's output, [outputs][pooled].
#pragma once

#include <math.h>  // not <cmath>, whose inline functions all variants would share

#include "frames.hpp"
#include "masks.hpp"

namespace clops::CLOPS_VARIANT {

// What a channel is normalised by: (z - mean) * gain + shift, where gain = norm_weight * inverse deviation.
template <class Block>
struct Norm {
  float mean[Block::outputs], inverse[Block::outputs], gain[Block::outputs], shift[Block::outputs];

  void set(int channel, float channel_mean, float variance, const float* weight, const float* bias) {
    mean[channel] = channel_mean;
    inverse[channel] = 1.0f / sqrtf(variance + kEpsilon);
    gain[channel] = weight[channel] * inverse[channel];
    shift[channel] = bias[channel];
  }

  CLOPS_INLINE V operator()(int channel, V z) const {
    return fma(z - mean[channel], all(gain[channel]), all(shift[channel]));
  }
};

// One channel's outputs of one parity; the odd ones are one fewer where the length is odd.
template <class Block>
CLOPS_INLINE const V* row_of(const V* z, int parity, int channel) {
  return z + (parity * Block::outputs + channel) * Block::pairs;
}
template <class Block>
constexpr int row_length(int parity) {
  return parity == 0 ? Block::pairs : Block::pooled;
}

// The sum of f(z) over one channel of one group of instances.
template <class Block, class F>
CLOPS_INLINE double channel_sum(const V* z, int channel, V present, F f) {
  V total = {};
  for (int parity = 0; parity < 2; ++parity) {
    const V* row = row_of<Block>(z, parity, channel);
    V partial[4] = {};  // independent sums, so that additions need not wait for one another
    int i = 0;
    for (; i + 4 <= row_length<Block>(parity); i += 4) CLOPS_UNROLL for (int q = 0; q < 4; ++q) partial[q] += f(row[i + q]);
    for (; i < row_length<Block>(parity); ++i) partial[0] += f(row[i]);
    total += (partial[0] + partial[1]) + (partial[2] + partial[3]);
  }
  return sum(total * present);
}

// The statistics of a batch; `z_of(g)` are the outputs for group g of its instances.
template <class Block, class ZOf>
inline void batch_norm(ZOf z_of, int count, const float* weight, const float* bias, Norm<Block>& norm,
                       float* running_mean, float* running_variance) {
  const double n = static_cast<double>(count) * Block::length;
  for (int c = 0; c < Block::outputs; ++c) {
    double total = 0, squares = 0;
    for (int g = 0; g < groups_of(count); ++g) {
      total += channel_sum<Block>(z_of(g), c, group_of(count, g).present(), [](V z) { return z; });
    }
    const float mean = static_cast<float>(total / n);
    for (int g = 0; g < groups_of(count); ++g) {
      squares += channel_sum<Block>(z_of(g), c, group_of(count, g).present(), [mean](V z) { return (z - mean) * (z - mean); });
    }
    norm.set(c, mean, static_cast<float>(squares / n), weight, bias);
    if (running_mean) {
      running_mean[c] += kMomentum * (mean - running_mean[c]);
      running_variance[c] += kMomentum * (static_cast<float>(squares / (n - 1)) - running_variance[c]);
    }
  }
}

template <class Block>
inline void running_norm(const float* mean, const float* variance, const float* weight, const float* bias, Norm<Block>& norm) {
  for (int c = 0; c < Block::outputs; ++c) norm.set(c, mean[c], variance[c], weight, bias);
}

// h = dropout(ReLU(max(norm(even), norm(odd)))) for one group of instances; `scale` goes with the masks.
template <class Block>
inline void pool(const V* z, const Norm<Block>& norm, const Masks& masks, float scale, V* h) {
  for (int c = 0; c < Block::outputs; ++c) {
    const V *even = row_of<Block>(z, 0, c), *odd = row_of<Block>(z, 1, c);
    V* out = h + c * Block::pooled;
    for (int j = 0; j < Block::pooled; j += 2) {
      V kept[2];
      CLOPS_UNROLL for (int q = 0; q < 2; ++q) {
        kept[q] = maximum(maximum(norm(c, even[j + q]), norm(c, odd[j + q])), V{}) * scale;
      }
      masks.apply((Block::first_unit + c * Block::pooled + j) / 2, kept[0], kept[1]);
      out[j] = kept[0];
      out[j + 1] = kept[1];
    }
  }
}

// Backward from here on, h is no more than the gradient that reaches the larger of a pair (see `through` in pairs.hpp).
//
// Calls `take(channel, by_shift, by_gain)` with the gradient of each instance by the norm's shift, and by its gain without
// the factor `inverse`, and in between `of_pair(channel, pair, gradient, which are the larger)`.
template <class Block, class OfPair, class Take>
CLOPS_INLINE void by_norm(const V* z, const V* h, const Norm<Block>& norm, OfPair of_pair, Take take) {
  for (int c = 0; c < Block::outputs; ++c) {
    const V *even = row_of<Block>(z, 0, c), *odd = row_of<Block>(z, 1, c);
    V shift[2] = {}, gain[2] = {};
    for (int j = 0; j < Block::pooled; j += 2) {
      CLOPS_UNROLL for (int q = 0; q < 2; ++q) {
        const V gradient = h[c * Block::pooled + j + q];
        const auto first = norm(c, even[j + q]) >= norm(c, odd[j + q]);
        const V larger = first ? even[j + q] : odd[j + q];
        shift[q] += gradient;
        gain[q] = fma(gradient, larger - norm.mean[c], gain[q]);
        of_pair(c, j + q, gradient, first);
      }
    }
    take(c, shift[0] + shift[1], gain[0] + gain[1]);
  }
}

// With running statistics one pass backward does for a group: what `by_norm` takes, and z becomes the gradient by z.
template <class Block, class Take>
inline void differentiate_running_norm(V* z, const V* h, const Norm<Block>& norm, V present, Take take) {
  constexpr int half = Block::outputs * Block::pairs;
  const auto put = [&](int c, int j, V gradient, auto first) __attribute__((always_inline)) {
    V* even = z + c * Block::pairs + j;
    const V by_larger = norm.gain[c] * present * gradient;
    even[0] = first ? by_larger : V{};
    even[half] = first ? V{} : by_larger;
  };
  by_norm(z, h, norm, put, take);
  if constexpr (Block::pairs > Block::pooled) {  // the last output, which pooling drops
    for (int c = 0; c < Block::outputs; ++c) z[c * Block::pairs + Block::pooled] = z[half + c * Block::pairs + Block::pooled] = V{};
  }
}

// With batch statistics two do. The first adds up by channel what `by_norm` finds. Lanes without an instance have no
// gradient, so nothing needs to be masked.
template <class Block>
inline void add_norm_gradient(const V* z, const V* h, const Norm<Block>& norm, double* by_shift, double* by_gain) {
  by_norm(z, h, norm, [](int, int, V, auto) {}, [&](int c, V shift, V gain) __attribute__((always_inline)) {
    by_shift[c] += sum(shift);
    by_gain[c] += sum(gain);
  });
}

// In the second z becomes the gradient by z. Every output takes part in the mean and the variance: `mean_gradient` and
// `variance_gradient` by channel are what that subtracts.
template <class Block>
inline void differentiate_norm(V* z, const V* h, const Norm<Block>& norm, const float* mean_gradient, const float* variance_gradient,
                               V present) {
  for (int c = 0; c < Block::outputs; ++c) {
    V* even = z + c * Block::pairs;
    V* odd = even + Block::outputs * Block::pairs;
    const V gain = norm.gain[c] * present;
    const auto gradient = [&](V by_output, V value) __attribute__((always_inline)) {
      return gain * (by_output - fma(value - norm.mean[c], all(variance_gradient[c]), all(mean_gradient[c])));
    };
    for (int j = 0; j < Block::pooled; ++j) {
      const V by_larger = h[c * Block::pooled + j];
      const auto first = norm(c, even[j]) >= norm(c, odd[j]);
      even[j] = gradient(first ? by_larger : V{}, even[j]);
      odd[j] = gradient(first ? V{} : by_larger, odd[j]);
    }
    if constexpr (Block::pairs > Block::pooled) {  // the last output, which pooling drops
      even[Block::pooled] = gradient(V{}, even[Block::pooled]);
      odd[Block::pooled] = V{};
    }
  }
}

}  // namespace clops::CLOPS_VARIANT
