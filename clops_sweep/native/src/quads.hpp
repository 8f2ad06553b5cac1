// The convolution of pairs.hpp, four neighbouring outputs at a time with 16 products instead of 28, for predictions.
//
// Four outputs y0 ... y3 depend on the inputs x0 ... x15. Taps 0, 3, 6 are a convolution of stride 1 over x0, x3, ...,
// x15, taps 1, 4 over x1, x4, ..., x13, and taps 2, 5 over x2, x5, ..., x14. Winograd's minimal filters F(4, 3) on the
// points 0, 1, -1, 2, -2, infinity and F(4, 2) on the same without -2 give products whose sums P(point), over taps and
// input channels, determine all four outputs:
//
//     y_k = P(0) 0^k + P(1) + (-1)^k P(-1) + 2^k P(2) + (-2)^k P(-2)    (0^0 = 1),    y_3 also has P(infinity).
//
// The larger factors cost little precision: the relative error of logits is 4e-7, that of PyTorch's 3e-7. Gradients use
// pairs. The factors of inputs and weights are stored in rows by point: first P(0) of all channels (3 per channel),
// then P(1), P(-1) and P(2) (3 each), P(-2) (1) and P(infinity) (3).
#pragma once

#include "convolution.hpp"

namespace clops::CLOPS_VARIANT {

template <class Block>
struct Quad {
  static constexpr int zero = 0, one = 3 * Block::inputs, minus_one = 6 * Block::inputs, two = 9 * Block::inputs,
                       minus_two = 12 * Block::inputs, infinity = 13 * Block::inputs;
  static constexpr int rows = 16 * Block::inputs;
  static constexpr int count = Block::pooled / 2;  // quads of outputs that pooling keeps
  static_assert(Block::pooled % 2 == 0);
};

// [outputs][inputs][7] to [outputs][Quad::rows].
template <class Block>
inline void quad_weights(const float* weight, float* to) {
  using Q = Quad<Block>;
  for (int o = 0; o < Block::outputs; ++o, to += Q::rows) {
    for (int i = 0; i < Block::inputs; ++i, weight += kKernel) {
      const float* w = weight;
      const float outer = w[0] + w[6], wide = w[0] + 4 * w[6];
      to[Q::zero + 3 * i] = w[0] / 4;
      to[Q::one + 3 * i] = -(outer + w[3]) / 6;
      to[Q::minus_one + 3 * i] = -(outer - w[3]) / 6;
      to[Q::two + 3 * i] = (wide + 2 * w[3]) / 24;
      to[Q::minus_two + i] = (wide - 2 * w[3]) / 24;
      to[Q::infinity + 3 * i] = w[6];
      for (int t = 1; t < 3; ++t) {
        to[Q::zero + 3 * i + t] = w[t] / 2;
        to[Q::one + 3 * i + t] = -(w[t] + w[t + 3]) / 2;
        to[Q::minus_one + 3 * i + t] = -(w[t] - w[t + 3]) / 6;
        to[Q::two + 3 * i + t] = (w[t] + 2 * w[t + 3]) / 6;
        to[Q::infinity + 3 * i + t] = w[t + 3];
      }
    }
  }
}

// The factors of one quad of one channel: x0 ... x15 to rows of `to`, `row` vectors apart.
template <class Block>
CLOPS_INLINE void quad_input(const V (&x)[16], int channel, int row, V* to) {
  using Q = Quad<Block>;
  const auto at = [&](int part, int t) -> V& { return to[(part + 3 * channel + t) * row]; };
  const V two = all(2.0f), four = all(4.0f);
  const V *d0 = x, *d1 = x + 3, *d2 = x + 6, *d3 = x + 9, *d4 = x + 12, *d5 = x + 15;
  const V even = fma(-four, *d2, *d4), odd = fma(-four, *d1, *d3), even2 = *d4 - *d2, odd2 = two * (*d3 - *d1);
  at(Q::zero, 0) = fma(four, *d0 - *d2, even2);
  at(Q::one, 0) = even + odd;
  at(Q::minus_one, 0) = even - odd;
  at(Q::two, 0) = even2 + odd2;
  to[(Q::minus_two + channel) * row] = even2 - odd2;
  at(Q::infinity, 0) = fma(four, *d1 - *d3, *d5 - *d3);
  CLOPS_UNROLL for (int t = 1; t < 3; ++t) {
    const V e0 = x[t], e1 = x[t + 3], e2 = x[t + 6], e3 = x[t + 9], e4 = x[t + 12];
    const V outer = e3 - e1;
    at(Q::zero, t) = fma(two, e0 - e2, outer);
    at(Q::one, t) = fma(-two, e1, e3 - e2);
    at(Q::minus_one, t) = fma(two, e1 - e2, e3 - e2);
    at(Q::two, t) = outer;
    at(Q::infinity, t) = fma(-two, outer, e4 - e2);
  }
}

// Convolution, pooling and ReLU, from the factors of weights and inputs to [outputs][pooled], times `scale`.
template <class Block>
inline void convolve_and_pool(const float* weight, const float* bias, const V* input, float scale, V* to) {
  using Q = Quad<Block>;
  constexpr int rows = Block::outputs;
  for_tiles<rows, Q::count, 4, kTileColumns<4>>([&](auto& tile, int m, int n) __attribute__((always_inline)) {
    const auto product = [&](auto& sum, int part, int factors) __attribute__((always_inline)) {
      sum.multiply(factors * Block::inputs, {weight + m * Q::rows + part, 1, Q::rows}, {input + part * Q::count + n, Q::count, 1});
    };
    constexpr int count = sizeof(tile) / sizeof(V), columns = sizeof(tile.sum[0]) / sizeof(V);
    // a = P(1) + P(-1), b = P(1) - P(-1); c and d likewise for 2 and -2
    auto a = tile, b = tile, c = tile, d = tile;
    const auto sum_and_difference = [&](auto& sum, auto& difference) __attribute__((always_inline)) {
      V *s = &sum.sum[0][0], *t = &difference.sum[0][0];
      CLOPS_UNROLL for (int i = 0; i < count; ++i) {
        const V first = s[i], second = t[i];
        s[i] = first + second;
        t[i] = first - second;
      }
    };
    a.start(V{});
    product(a, Q::one, 3);
    b.start(V{});
    product(b, Q::minus_one, 3);
    sum_and_difference(a, b);
    c.start(V{});
    product(c, Q::two, 3);
    d.start(V{});
    product(d, Q::minus_two, 1);
    sum_and_difference(c, d);
    add_bias(a, bias + m);
    add_bias(b, bias + m);

    // The candidates of pooling: y0 and y1, y2 and y3.
    V *sum1 = &a.sum[0][0], *difference1 = &b.sum[0][0], *sum2 = &c.sum[0][0], *difference2 = &d.sum[0][0], *y = &tile.sum[0][0];
    const auto pool = [&](int parity, auto other) __attribute__((always_inline)) {
      CLOPS_UNROLL for (int i = 0; i < count; ++i) {
        to[(m + i / columns) * Block::pooled + 2 * (n + i % columns) + parity] = maximum(maximum(y[i], other(i)), V{}) * scale;
      }
    };
    CLOPS_UNROLL for (int i = 0; i < count; ++i) y[i] = sum1[i] + sum2[i];
    product(tile, Q::zero, 3);
    pool(0, [&](int i) { return fma(all(2.0f), difference2[i], difference1[i]); });
    CLOPS_UNROLL for (int i = 0; i < count; ++i) y[i] = fma(all(8.0f), difference2[i], difference1[i]);
    product(tile, Q::infinity, 3);
    pool(1, [&](int i) { return fma(all(4.0f), sum2[i], sum1[i]); });
  });
}

}  // namespace clops::CLOPS_VARIANT
