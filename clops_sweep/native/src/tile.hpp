// The two loops that take nearly all the time, as tiles whose accumulators stay in registers.
//
//   multiply:   Y[m][n] = start + sum_k w(k, m) x(k, n)         w numbers, x and Y vectors over instances
//   correlate:  G[m][n] = sum_k sum_lanes d(m, k) x(n, k)       d, x vectors over instances, G numbers
//
// Operands have strides, so that convolutions, their gradients and linear layers use the same loops.
#pragma once

#include "vector.hpp"

namespace clops::CLOPS_VARIANT {

// Columns of a tile with 8 and with 4 rows. The registers must hold rows * columns accumulators, one column of w and
// one row of x: AVX-512 has 32 registers, the others 16.
constexpr bool kManyRegisters = kLanes == 16;
constexpr int kRows = kManyRegisters ? 8 : 4;
constexpr int kColumns = 3;

template <int n>
struct Constant {
  static constexpr int value = n;
};

template <class T>
struct Matrix {
  T* at;
  int row, column;  // distances of neighbours

  CLOPS_INLINE T* operator()(int i, int j) const { return at + static_cast<std::ptrdiff_t>(i) * row + static_cast<std::ptrdiff_t>(j) * column; }
};

template <int rows, int columns>
struct Tile {
  V sum[rows][columns];

  CLOPS_INLINE void start(V value) {
    CLOPS_UNROLL for (int m = 0; m < rows; ++m) CLOPS_UNROLL for (int n = 0; n < columns; ++n) sum[m][n] = value;
  }

  CLOPS_INLINE void load(Matrix<const V> from) {
    CLOPS_UNROLL for (int m = 0; m < rows; ++m) CLOPS_UNROLL for (int n = 0; n < columns; ++n) sum[m][n] = *from(m, n);
  }

  // sum[m][n] += sum_{k < terms} w(k, m) x(k, n)
  template <class X = V>
  CLOPS_INLINE void multiply(int terms, Matrix<const float> w, Matrix<const X> x) {
    _Pragma("GCC unroll 1") for (int k = 0; k < terms; ++k) {
      V factor[columns];
      CLOPS_UNROLL for (int n = 0; n < columns; ++n) factor[n] = *x(k, n);
      CLOPS_UNROLL for (int m = 0; m < rows; ++m) {
        const V weight = all(*w(k, m));
        CLOPS_UNROLL for (int n = 0; n < columns; ++n) sum[m][n] = fma(weight, factor[n], sum[m][n]);
      }
    }
  }

  CLOPS_INLINE void store(Matrix<V> to) const {
    CLOPS_UNROLL for (int m = 0; m < rows; ++m) CLOPS_UNROLL for (int n = 0; n < columns; ++n) *to(m, n) = sum[m][n];
  }

  // sum[m][n] += sum_{k < terms} d(m, k) x(n, k), per lane
  CLOPS_INLINE void correlate(int terms, Matrix<const V> d, Matrix<const V> x) {
    _Pragma("GCC unroll 1") for (int k = 0; k < terms; ++k) {
      V factor[columns];
      CLOPS_UNROLL for (int n = 0; n < columns; ++n) factor[n] = *x(n, k);
      CLOPS_UNROLL for (int m = 0; m < rows; ++m) {
        const V other = *d(m, k);
        CLOPS_UNROLL for (int n = 0; n < columns; ++n) sum[m][n] = fma(other, factor[n], sum[m][n]);
      }
    }
  }
};

// Calls `body(Tile<...>&, first row, first column)` for tiles that cover rows x columns; the last ones are narrower.
template <int rows, int columns, int tile_rows = kRows, int tile_columns = kColumns, class Body>
CLOPS_INLINE void for_tiles(Body body) {
  static_assert(rows % tile_rows == 0);
  constexpr int rest = columns % tile_columns;
  for (int n = 0; n + tile_columns <= columns; n += tile_columns) {
    for (int m = 0; m < rows; m += tile_rows) {
      Tile<tile_rows, tile_columns> tile;
      body(tile, m, n);
    }
  }
  if constexpr (rest > 0) {
    for (int m = 0; m < rows; m += tile_rows) {
      Tile<tile_rows, rest> tile;
      body(tile, m, columns - rest);
    }
  }
}

// Calls `body(Constant<size>, first)` for pieces of `size` columns; the last one is smaller.
template <int columns, int size, class Body>
CLOPS_INLINE void for_pieces(Body body) {
  constexpr int rest = columns % size;
  for (int first = 0; first + size <= columns; first += size) body(Constant<size>{}, first);
  if constexpr (rest > 0) body(Constant<rest>{}, columns - rest);
}

// to[i * column] += totals[width * row + i], i < width: as one vector if the entries are adjacent.
template <int width>
CLOPS_INLINE void add_row(V totals, int row, float* to, int column) {
  if constexpr (width == 4) {
    typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));
    if (column == 1) {
      *reinterpret_cast<Four*>(to) += reinterpret_cast<const Four*>(&totals)[row];
      return;
    }
  }
  CLOPS_UNROLL for (int i = 0; i < width; ++i) to[i * column] += totals[width * row + i];
}

// to(m, n) += sum_k sum_lanes d(m, k) x(n, k)
template <int rows, int columns>
inline void add_correlation(int terms, Matrix<const V> d, Matrix<const V> x, Matrix<float> to) {
  // One accumulator per lane, so that one transposition sums them all.
  for_tiles<rows, columns, 4, kLanes / 4>([&](auto& tile, int m, int n) __attribute__((always_inline)) {
    constexpr int width = sizeof(tile.sum[0]) / sizeof(V);
    tile.start(V{});
    tile.correlate(terms, {d(m, 0), d.row, d.column}, {x(n, 0), x.row, x.column});
    V flat[kLanes] = {};
    CLOPS_UNROLL for (int i = 0; i < 4 * width; ++i) flat[i] = tile.sum[i / width][i % width];
    const V total = sums(flat);
    CLOPS_UNROLL for (int p = 0; p < 4; ++p) add_row<width>(total, p, to(m + p, n), to.column);
  });
}

}  // namespace clops::CLOPS_VARIANT
