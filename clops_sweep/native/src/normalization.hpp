// Batch norm, pooling, ReLU and dropout after a convolution: one forward pass, one or two backward passes.
//
// z is a convolution's output by parity, [2][outputs][pairs]; h the block's output, [outputs][pooled].
#pragma once

#include <math.h>  // not <cmath>: all variants would share its inline functions

#include "frames.hpp"
#include "masks.hpp"

namespace clops::CLOPS_VARIANT {

// The normalisation of a channel: (z - mean) * gain + shift, where gain = norm_weight * inverse deviation.
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

// One channel's outputs of one parity; if the length is odd, there is one odd output less.
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
    V partial[4] = {};  // independent sums, so that additions run in parallel
    int i = 0;
    for (; i + 4 <= row_length<Block>(parity); i += 4) CLOPS_UNROLL for (int q = 0; q < 4; ++q) partial[q] += f(row[i + q]);
    for (; i < row_length<Block>(parity); ++i) partial[0] += f(row[i]);
    total += (partial[0] + partial[1]) + (partial[2] + partial[3]);
  }
  return sum(total * present);
}

// The statistics of a batch; `z_of(g)` returns the outputs for group g of its instances.
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

// h = dropout(ReLU(max(norm(even), norm(odd)))) of some pairs of a channel, for one group of instances; `scale` is the
// factor of kept units.
template <class Block>
CLOPS_INLINE void pool(int c, int first, int last, const V* z, const Norm<Block>& norm, const Masks& masks, float scale, V* h) {
  const V *even = row_of<Block>(z, 0, c), *odd = row_of<Block>(z, 1, c);
  V* out = h + c * Block::pooled;
  for (int j = first; j < last; j += 2) {
    V kept[2];
    CLOPS_UNROLL for (int q = 0; q < 2; ++q) {
      kept[q] = maximum(maximum(norm(c, even[j + q]), norm(c, odd[j + q])), V{}) * scale;
    }
    masks.apply((Block::first_unit + c * Block::pooled + j) / 2, kept[0], kept[1]);
    out[j] = kept[0];
    out[j + 1] = kept[1];
  }
}

// In the backward pass, h holds the gradient with respect to the larger output of each pair (see `through` in
// pairs.hpp).
//
// The gradient of each instance with respect to a channel's shift, and to its gain without the factor `inverse`.
struct ByNorm {
  V shift[2] = {}, gain[2] = {};

  V by_shift() const { return shift[0] + shift[1]; }
  V by_gain() const { return gain[0] + gain[1]; }
};

// Adds the contributions of some pairs of a channel, and calls `of_pair(pair, gradient, mask of lanes with a larger
// even output)`.
template <class Block, class OfPair>
CLOPS_INLINE void add_by_norm(int c, int first, int last, const V* z, const V* h, const Norm<Block>& norm, ByNorm& sums, OfPair of_pair) {
  const V *even = row_of<Block>(z, 0, c), *odd = row_of<Block>(z, 1, c);
  ByNorm found = sums;
  for (int j = first; j < last; j += 2) {
    CLOPS_UNROLL for (int q = 0; q < 2; ++q) {
      const V gradient = h[c * Block::pooled + j + q];
      const auto is_first = norm(c, even[j + q]) >= norm(c, odd[j + q]);
      const V larger = is_first ? even[j + q] : odd[j + q];
      found.shift[q] += gradient;
      found.gain[q] = fma(gradient, larger - norm.mean[c], found.gain[q]);
      of_pair(j + q, gradient, is_first);
    }
  }
  sums = found;
}

// The gradient with respect to a block's norm, summed over the groups so far.
template <class Block>
struct NormSums {
  double by_shift[Block::outputs], by_gain[Block::outputs];

  void add(int c, const ByNorm& by) {
    by_shift[c] += sum(by.by_shift());
    by_gain[c] += sum(by.by_gain());
  }
};

// With running statistics, the gradient with respect to z of one group, for some pairs of a channel; the target may be
// z. Channels and pairs come in order. It also sums the gradient with respect to the norm's parameters.
template <class Block>
struct RunningGradient {
  const V *z, *h;
  const Norm<Block>& norm;
  const V present;
  ByNorm by_norm[Block::outputs] = {};

  CLOPS_INLINE void operator()(int c, int first, int last, V* to_even, V* to_odd) {
    const V gain = norm.gain[c] * present;
    add_by_norm(c, first, last, z, h, norm, by_norm[c], [&](int j, V gradient, auto is_first) __attribute__((always_inline)) {
      const V by_larger = gain * gradient;
      to_even[j - first] = is_first ? by_larger : V{};
      to_odd[j - first] = is_first ? V{} : by_larger;
    });
  }
};

// The same with batch statistics, on which every output has an effect; the terms `mean` and `variance` per channel
// account for it. So `add_by_norm` must have been called for the whole batch first. Unused lanes have no gradient, so
// `sums` needs no mask.
template <class Block>
struct BatchGradient {
  const Norm<Block>& norm;
  float mean[Block::outputs], variance[Block::outputs];

  // `n`: number of outputs per channel, over all instances.
  BatchGradient(const Norm<Block>& of, const NormSums<Block>& sums, double n) : norm(of) {
    for (int c = 0; c < Block::outputs; ++c) {
      mean[c] = static_cast<float>(sums.by_shift[c] / n);
      variance[c] = static_cast<float>(sums.by_gain[c] * norm.inverse[c] * norm.inverse[c] / n);
    }
  }

  CLOPS_INLINE void operator()(const V* z, const V* h, V present, int c, int first, int last, V* to_even, V* to_odd) const {
    const V *even = row_of<Block>(z, 0, c), *odd = row_of<Block>(z, 1, c);
    const V gain = norm.gain[c] * present;
    const auto gradient = [&](V by_output, V value) __attribute__((always_inline)) {
      return gain * (by_output - fma(value - norm.mean[c], all(variance[c]), all(mean[c])));
    };
    for (int j = first; j < last && j < Block::pooled; ++j) {
      const V by_larger = h[c * Block::pooled + j];
      const auto is_first = norm(c, even[j]) >= norm(c, odd[j]);
      const V by_even = gradient(is_first ? by_larger : V{}, even[j]), by_odd = gradient(is_first ? V{} : by_larger, odd[j]);
      to_even[j - first] = by_even;
      to_odd[j - first] = by_odd;
    }
    if (last > Block::pooled) {  // the last output, which pooling drops
      to_even[Block::pooled - first] = gradient(V{}, even[Block::pooled]);
      to_odd[Block::pooled - first] = V{};
    }
  }
};

}  // namespace clops::CLOPS_VARIANT
