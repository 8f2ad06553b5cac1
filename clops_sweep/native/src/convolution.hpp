// The three convolutions: forward, and the gradients with respect to weights and inputs.
//
// Outputs are stored by parity, [2][outputs][pairs], since pooling compares even[j] with odd[j].
#pragma once

#include "pairs.hpp"
#include "tile.hpp"

namespace clops::CLOPS_VARIANT {

template <int rows>
constexpr int kTileRows = rows % kRows == 0 ? kRows : 4;
template <int rows>
constexpr int kTileColumns = kRows * kColumns / kTileRows<rows>;

template <class T>
CLOPS_INLINE void add_bias(T& tile, const float* bias) {
  int m = 0;
  for (auto& row : tile.sum) {
    for (V& value : row) value += bias[m];
    ++m;
  }
}

// The first convolution, computed directly, since pairing does not pay for its single input channel. Calls `finish(even
// tile, odd tile, first output, first pair)`; pairs are counted from the start of the frames.
template <int pairs = Block1::pairs, class Finish>
CLOPS_INLINE void convolve_frames(const float* weight, const float* bias, const V* frames, Finish finish) {
  for_tiles<Block1::outputs, pairs, 4, kTileColumns<4>>([&](auto& even, int m, int n) __attribute__((always_inline)) {
    auto odd = even;
    const Matrix<const float> w{weight + m * kKernel, 1, kKernel};
    even.start(V{});
    even.multiply(kKernel, w, {frames + 2 * kStride * n, 1, 2 * kStride});
    odd.start(V{});
    odd.multiply(kKernel, w, {frames + 2 * kStride * n + kStride, 1, 2 * kStride});
    add_bias(even, bias + m);
    add_bias(odd, bias + m);
    finish(even, odd, m, n);
  });
}

// The first `pairs` pairs of a convolution, from paired weights and inputs.
template <class Block, int pairs = Block::pairs, class Finish>
CLOPS_INLINE void convolve(const float* weight, const float* bias, const V* input, Finish finish) {
  using P = Paired<Block>;
  constexpr int rows = Block::outputs, row = Block::pairs;
  for_tiles<rows, pairs, kTileRows<rows>, kTileColumns<rows>>([&](auto& even, int m, int n) __attribute__((always_inline)) {
    const auto weights = [&](int part) { return Matrix<const float>{weight + m * P::rows + part, 1, P::rows}; };
    const auto inputs = [&](int part) { return Matrix<const V>{input + part * row + n, row, 1}; };
    auto odd = even, difference = even;
    even.start(V{});
    even.multiply(3 * Block::inputs, weights(P::b), inputs(P::b));
    add_bias(even, bias + m);
    odd.start(V{});
    odd.multiply(Block::inputs, weights(P::c), inputs(P::c));
    constexpr int count = sizeof(even) / sizeof(V);
    V *b = &even.sum[0][0], *c = &odd.sum[0][0], *d = &difference.sum[0][0];
    CLOPS_UNROLL for (int i = 0; i < count; ++i) d[i] = b[i] - c[i], b[i] += c[i];
    even.multiply(3 * Block::inputs, weights(P::a), inputs(P::a));
    odd = difference;
    odd.multiply(3 * Block::inputs, weights(P::d), inputs(P::d));
    finish(even, odd, m, n);
  });
}

// Stores tiles by parity.
template <class Block>
struct StoreByParity {
  V* to;

  template <class T>
  CLOPS_INLINE void operator()(const T& even, const T& odd, int m, int n) const {
    constexpr int rows = sizeof(even.sum) / sizeof(even.sum[0]), columns = sizeof(even.sum[0]) / sizeof(V);
    CLOPS_UNROLL for (int p = 0; p < rows; ++p) CLOPS_UNROLL for (int q = 0; q < columns; ++q) {
      V* at = to + (m + p) * Block::pairs + n + q;
      at[0] = even.sum[p][q];
      at[Block::outputs * Block::pairs] = odd.sum[p][q];
    }
  }
};

constexpr int kFrameWeights = Block1::outputs * kKernel;

// The gradient with respect to the first convolution's weights, [outputs][7], per lane, separately for even and odd
// outputs. `by_outputs(channel, first pair, last, even, odd)` computes the gradient with respect to some pairs of
// outputs. It is used only here, a few pairs at a time, so that it stays in the first-level cache.
template <class ByOutputs>
inline void correlate_frames(ByOutputs& by_outputs, const V* frames, V (&by_weight)[2][kFrameWeights]) {
  constexpr int most = 16;
  V gradient[2][Block1::outputs][most];
  std::memset(by_weight, 0, sizeof by_weight);
  for_pieces<Block1::pairs, most>([&](auto size, int first) __attribute__((always_inline)) {
    for (int c = 0; c < Block1::outputs; ++c) by_outputs(c, first, first + size.value, gradient[0][c], gradient[1][c]);
    for (int parity = 0; parity < 2; ++parity) {
      for_tiles<Block1::outputs, kKernel, 4, kLanes / 4>([&](auto& tile, int m, int n) __attribute__((always_inline)) {
        V* sums = by_weight[parity] + m * kKernel + n;
        tile.load({sums, kKernel, 1});
        tile.correlate(size.value, {gradient[parity][m], most, 1}, {frames + 2 * kStride * first + kStride * parity + n, 1, 2 * kStride});
        tile.store({sums, kKernel, 1});
      });
    }
  });
}

// The gradient with respect to the paired inputs from `part` on, [rows][pairs], given that of the matching outputs.
template <class Block, int rows, int pairs>
inline void input_gradient(const float* weight, const V* gradient, int part, V* to) {
  for_tiles<rows, pairs, kTileRows<rows>, kTileColumns<rows>>([&](auto& tile, int m, int n) __attribute__((always_inline)) {
    tile.start(V{});
    tile.multiply(Block::outputs, {weight + part + m, Paired<Block>::rows, 1}, {gradient + n, Block::pairs, 1});
    tile.store({to + (part + m) * Block::pairs + n, Block::pairs, 1});
  });
}

// Sum and difference of the gradients of even and odd outputs, [2][outputs][pairs]: A and D need the gradients
// themselves, B and C need sum and difference. `mixed` may be `gradient`.
template <class Block>
inline void mix_parities(const V* gradient, V* mixed) {
  constexpr int half = Block::outputs * Block::pairs;
  for (int i = 0; i < half; ++i) {
    const V even = gradient[i], odd = gradient[half + i];
    mixed[i] = even + odd;
    mixed[half + i] = even - odd;
  }
}

// Calls `part(factors, matching gradient with respect to the outputs, first row)` for A and D, mixes the gradient, and
// calls it for B and C.
template <class Block, class Part>
CLOPS_INLINE void for_factors(V* gradient, Part part) {
  using P = Paired<Block>;
  constexpr int half = Block::outputs * Block::pairs;
  constexpr Constant<3 * Block::inputs> three{};
  part(three, gradient, P::a);
  part(three, gradient + half, P::d);
  mix_parities<Block>(gradient, gradient);
  part(three, gradient, P::b);
  part(Constant<Block::inputs>{}, gradient + half, P::c);
}

// Backward pass of a convolution: adds to the gradient with respect to the paired weights [outputs][Paired::rows], and
// replaces the paired inputs [Paired::rows][pairs] by their gradient. `gradient` is overwritten. Only the first `pairs`
// pairs have a gradient.
template <class Block, int pairs = Block::pairs>
inline void differentiate_convolution(const float* weight, V* gradient, V* input, float* to) {
  using P = Paired<Block>;
  constexpr int row = Block::pairs;
  for_factors<Block>(gradient, [&](auto count, const V* outer, int part) {
    constexpr int rows = count.value;
    add_correlation<Block::outputs, rows>(pairs, {outer, row, 1}, {input + part * row, row, 1}, {to + part, P::rows, 1});
    input_gradient<Block, rows, pairs>(weight, outer, part, input);
  });
}

}  // namespace clops::CLOPS_VARIANT
