// The three convolutions: forward, by their weights, by their inputs.
//
// Outputs are kept by parity, [2][outputs][pairs]: pooling compares even[j] with odd[j].
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

// The first convolution, directly: its single input channel would not pay for pairing. Calls
// `finish(even tile, odd tile, first output, first pair)`.
template <class Finish>
CLOPS_INLINE void convolve_frames(const float* weight, const float* bias, const V* frames, Finish finish) {
  for_tiles<Block1::outputs, Block1::pairs, 4, kTileColumns<4>>([&](auto& even, int m, int n) __attribute__((always_inline)) {
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

// A convolution from paired weights and inputs.
template <class Block, class Finish>
CLOPS_INLINE void convolve(const float* weight, const float* bias, const V* input, Finish finish) {
  using P = Paired<Block>;
  constexpr int rows = Block::outputs, row = Block::pairs;
  for_tiles<rows, Block::pairs, kTileRows<rows>, kTileColumns<rows>>([&](auto& even, int m, int n) __attribute__((always_inline)) {
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

// The gradient by the outputs in the form in which A, B, C and D take it: even and odd are there already, their sum and
// their difference follow. [2][outputs][pairs] to `mixed`, of the same shape.
template <class Block>
inline void mix_parities(const V* gradient, V* mixed) {
  constexpr int half = Block::outputs * Block::pairs;
  for (int i = 0; i < half; ++i) {
    mixed[i] = gradient[i] + gradient[half + i];
    mixed[half + i] = gradient[i] - gradient[half + i];
  }
}

// Adds to the gradient by the first convolution's weights.
inline void add_frame_weight_gradient(const V* gradient, const V* frames, float* to) {
  constexpr int half = Block1::outputs * Block1::pairs;
  for (int parity = 0; parity < 2; ++parity) {
    add_correlation<Block1::outputs, kKernel>(Block1::pairs, {gradient + parity * half, Block1::pairs, 1},
                                              {frames + parity * kStride, 1, 2 * kStride}, {to, kKernel, 1});
  }
}

// Adds to the gradient by paired weights [outputs][Paired::rows].
template <class Block>
inline void add_weight_gradient(const V* gradient, const V* mixed, const V* input, float* to) {
  using P = Paired<Block>;
  constexpr int half = Block::outputs * Block::pairs;
  const auto add = [&](auto rows, const V* outer, int part) {
    add_correlation<Block::outputs, rows.value>(Block::pairs, {outer, Block::pairs, 1},
                                                {input + part * Block::pairs, Block::pairs, 1}, {to + part, P::rows, 1});
  };
  constexpr Constant<3 * Block::inputs> three{};
  add(three, gradient, P::a);
  add(three, mixed, P::b);
  add(Constant<Block::inputs>{}, mixed + half, P::c);
  add(three, gradient + half, P::d);
}

// The gradient by paired inputs [Paired::rows][pairs].
template <class Block>
inline void input_gradient(const float* weight, const V* gradient, const V* mixed, V* to) {
  using P = Paired<Block>;
  constexpr int half = Block::outputs * Block::pairs;
  const auto fill = [&](auto count, const V* outer, int part) {
    constexpr int rows = count.value;
    for_tiles<rows, Block::pairs, kTileRows<rows>, kTileColumns<rows>>([&](auto& tile, int m, int n) __attribute__((always_inline)) {
      tile.start(V{});
      tile.multiply(Block::outputs, {weight + part + m, P::rows, 1}, {outer + n, Block::pairs, 1});
      tile.store({to + (part + m) * Block::pairs + n, Block::pairs, 1});
    });
  };
  constexpr Constant<3 * Block::inputs> three{};
  fill(three, gradient, P::a);
  fill(three, mixed, P::b);
  fill(Constant<Block::inputs>{}, mixed + half, P::c);
  fill(three, gradient + half, P::d);
}

}  // namespace clops::CLOPS_VARIANT
