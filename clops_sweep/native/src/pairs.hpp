// A convolution of kernel 7 and stride 3 that computes two neighbouring outputs at a time, with 10 products, not 14.
//
// Two neighbouring outputs, the pair that pooling compares, depend on ten inputs x0 ... x9:
//
//     even = w0 x0 + ... + w6 x6,    odd = w0 x3 + ... + w6 x9.
//
// Taps 0, 3, 6 are a convolution of stride 1 over x0, x3, x6, x9, taps 1, 4 over x1, x4, x7, and taps 2, 5 over x2, x5,
// x8. Winograd's minimal filters F(2, 3) and F(2, 2) compute them with 4 + 3 + 3 products (S. Winograd, Arithmetic
// Complexity of Computations, 1980; A. Lavin and S. Gray, 2016):
//
//     A = w0 (x0 - x6) + w1 (x1 - x4) + w2 (x2 - x5)
//     B = (w0 + w3 + w6) / 2 (x3 + x6) + (w1 + w4) x4 + (w2 + w5) x5
//     C = (w0 - w3 + w6) / 2 (x6 - x3)
//     D = w6 (x9 - x3) + w4 (x7 - x4) + w5 (x8 - x5)
//     even = A + B + C,    odd = B - C + D.
//
// A, B, C and D are summed over input channels. So the factors of inputs are computed once for all output channels, and
// those of weights once for all instances. These factors are the "paired" inputs and weights: 10 per channel, first A
// of all channels (3 per channel), then B (3), C (1) and D (3).
#pragma once

#include "shapes.hpp"
#include "vector.hpp"

namespace clops::CLOPS_VARIANT {

template <class Block>
struct Paired {
  static constexpr int a = 0, b = 3 * Block::inputs, c = 6 * Block::inputs, d = 7 * Block::inputs;
  static constexpr int rows = 10 * Block::inputs;
};

// [outputs][inputs][7] to [outputs][Paired::rows].
template <class Block>
inline void pair_weights(const float* weight, float* to) {
  using P = Paired<Block>;
  for (int o = 0; o < Block::outputs; ++o, to += P::rows) {
    for (int i = 0; i < Block::inputs; ++i, weight += kKernel) {
      const float *w = weight, outer = w[0] + w[6];
      float *a = to + P::a + 3 * i, *b = to + P::b + 3 * i, *d = to + P::d + 3 * i;
      a[0] = w[0], a[1] = w[1], a[2] = w[2];
      b[0] = 0.5f * (outer + w[3]), b[1] = w[1] + w[4], b[2] = w[2] + w[5];
      to[P::c + i] = 0.5f * (outer - w[3]);
      d[0] = w[6], d[1] = w[4], d[2] = w[5];
    }
  }
}

// The transpose of `pair_weights`: from the gradient with respect to paired weights to that of the weights, as numbers
// or vectors.
template <class Block, int outputs = Block::outputs, class T>
inline void unpair_weight_gradient(const T* from, T* gradient) {
  using P = Paired<Block>;
  for (int o = 0; o < outputs; ++o, from += P::rows) {
    for (int i = 0; i < Block::inputs; ++i, gradient += kKernel) {
      const T *a = from + P::a + 3 * i, *b = from + P::b + 3 * i, *d = from + P::d + 3 * i;
      const T half_b = 0.5f * b[0], half_c = 0.5f * from[P::c + i];
      gradient[0] = a[0] + half_b + half_c;
      gradient[1] = a[1] + b[1];
      gradient[2] = a[2] + b[2];
      gradient[3] = half_b - half_c;
      gradient[4] = b[1] + d[1];
      gradient[5] = b[2] + d[2];
      gradient[6] = half_b + half_c + d[0];
    }
  }
}

// The paired inputs of one pair of one channel: x0 ... x9 to rows of `to`, `row` vectors apart.
template <class Block>
CLOPS_INLINE void pair_input(const V (&x)[10], int channel, int row, V* to) {
  using P = Paired<Block>;
  V *a = to + (P::a + 3 * channel) * row, *b = to + (P::b + 3 * channel) * row, *d = to + (P::d + 3 * channel) * row;
  a[0] = x[0] - x[6], a[row] = x[1] - x[4], a[2 * row] = x[2] - x[5];
  b[0] = x[3] + x[6], b[row] = x[4], b[2 * row] = x[5];
  to[(P::c + channel) * row] = x[6] - x[3];
  d[0] = x[9] - x[3], d[row] = x[7] - x[4], d[2 * row] = x[8] - x[5];
}

// One channel of the inputs [inputs][input_length] to the first `count` pairs of its paired inputs
// [Paired::rows][pairs]; inputs beyond the end are 0.
template <class Block, int count>
CLOPS_INLINE void pair_channel(int i, const V* input, V* to) {
  const V* channel = input + i * Block::input_length;
  for (int j = 0; j < count; ++j) {
    V x[10];
    CLOPS_UNROLL for (int t = 0; t < 10; ++t) x[t] = 6 * j + t < Block::input_length ? channel[6 * j + t] : V{};
    pair_input<Block>(x, i, Block::pairs, to + j);
  }
}

template <class Block, int count = Block::pairs>
inline void pair_inputs(const V* input, V* to) {
  for (int i = 0; i < Block::inputs; ++i) pair_channel<Block, count>(i, input, to);
}

// The gradient passed on through a block's output h: 0 where h is 0, since ReLU or dropout blocked it there.
CLOPS_INLINE V through(V h, V gradient, float scale) { return h > 0.0f ? gradient * scale : V{}; }

// The transpose of `pair_channel`: from the gradient with respect to paired inputs to that of one channel of the
// inputs, passed on through them.
template <class Block, int count>
CLOPS_INLINE void unpair_channel(int i, const V* from, float scale, V* input) {
  using P = Paired<Block>;
  constexpr int row = Block::pairs;
  const V *a = from + (P::a + 3 * i) * row, *b = from + (P::b + 3 * i) * row, *c = from + (P::c + i) * row,
          *d = from + (P::d + 3 * i) * row;
  V* channel = input + i * Block::input_length;
  const auto put = [&](int t, V x) __attribute__((always_inline)) { channel[t] = through(channel[t], x, scale); };
  V carried[4] = {};  // x6 ... x9 of a pair are x0 ... x3 of the next
  for (int j = 0; j < count; ++j) {
    const V a0 = a[j], a1 = a[row + j], a2 = a[2 * row + j], b0 = b[j], b1 = b[row + j], b2 = b[2 * row + j];
    const V c0 = c[j], d0 = d[j], d1 = d[row + j], d2 = d[2 * row + j];
    const V x[6] = {carried[0] + a0, carried[1] + a1, carried[2] + a2, carried[3] + b0 - c0 - d0, b1 - a1 - d1, b2 - a2 - d2};
    CLOPS_UNROLL for (int t = 0; t < 6; ++t) {
      if (6 * j + t < Block::input_length) put(6 * j + t, x[t]);
    }
    carried[0] = b0 + c0 - a0, carried[1] = d1, carried[2] = d2, carried[3] = d0;
  }
  for (int t = 6 * count; t < Block::input_length; ++t) put(t, t < 6 * count + 4 ? carried[t - 6 * count] : V{});
}

}  // namespace clops::CLOPS_VARIANT
