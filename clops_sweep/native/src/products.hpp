// The two loops of convolutions and linear layers of any size, as tiles whose accumulators stay in registers.
//
//   multiply:   Y[m][to(p)] = start[m] + sum_k w[m][k] X[from(p) + offset(k)]        w numbers, X and Y vectors
//   correlate:  G[m][k] += sum_p D[m][p] X[from(p) + offset(k)]                      D, X vectors, G numbers
//
// What X holds at a position p for a term k is a matter of two tables of distances, so stride, dilation and the second
// axis cost nothing.
#pragma once

#include "layers/layer.hpp"
#include "tile.hpp"

namespace clops::CLOPS_VARIANT {

// Columns of a tile of `multiply`. As many as the registers hold, with rows * columns accumulators, one row of X and a
// weight.
template <int rows>
constexpr int kProductColumns = kManyRegisters ? (rows == 8 ? 3 : rows == 4 ? 6 : rows == 2 ? 8 : 12)
                                               : (rows == 8 ? 1 : rows == 4 ? 3 : rows == 2 ? 4 : 6);
constexpr int kMostColumns = 16;
constexpr int kBlock = 48;  // positions that pass all rows while they are in the first-level cache; divisible by all columns

// Distances in numbers, not in vectors. Tables are padded with their last entry, so that tiles need no narrower last one:
// it computes that entry several times.
struct Table {
  List<int> at;
  int size = 0;

  void append(int vectors) {
    at.append(vectors * kLanes);
    ++size;
  }
  void pad() {
    for (int i = 0; i < kMostColumns && size > 0; ++i) at.append(at.last());
  }
};

// The products of one layer: positions, terms, and which weight belongs to a term.
struct Gather {
  Table from, to, offset;
  List<int> weight;

  int positions() const { return from.size; }
  int terms() const { return offset.size; }
  void pad() {
    from.pad();
    to.pad();
    offset.pad();
  }
};

// Calls `body(Constant<rows>, first row)` for tiles that cover `rows` rows.
template <int most, class Body>
CLOPS_INLINE void for_row_tiles(int rows, Body body) {
  int m = 0;
  if constexpr (most >= 8) {
    for (; m + 8 <= rows; m += 8) body(Constant<8>{}, m);
  }
  for (; m + 4 <= rows; m += 4) body(Constant<4>{}, m);
  if (m + 2 <= rows) {
    body(Constant<2>{}, m);
    m += 2;
  }
  if (m < rows) body(Constant<1>{}, m);
}

// Writes weights in the order in which tiles read them: packed[tile][term][row of tile] = weight[m * row + weight(k)] gain[m].
// Without `gain` they stay as they are.
inline void pack(const Gather& gather, int rows, const float* weight, int row, const float* gain, float* packed) {
  for_row_tiles<kRows>(rows, [&](auto tile, int first) {
    for (int k = 0; k < gather.terms(); ++k) {
      for (int m = first; m < first + tile.value; ++m) {
        const float w = weight[static_cast<std::ptrdiff_t>(m) * row + gather.weight[k]];
        *packed++ = gain ? w * gain[m] : w;
      }
    }
  });
}

// Positions first ... last - 1 of one tile of rows. `start` may be null for zeros; results below `floor` become `floor`.
template <int rows, int columns>
inline void multiply_tile(const Gather& gather, int first, int last, const float* packed, const float* start, float floor, const float* x,
                          float* y, std::ptrdiff_t row) {
  const int terms = gather.terms();
  const int* offsets = gather.offset.at.data();
  for (int p = first; p < last; p += columns) {
    const float* at[columns];
    CLOPS_UNROLL for (int n = 0; n < columns; ++n) at[n] = x + gather.from.at[p + n];
    V total[rows][columns];
    CLOPS_UNROLL for (int m = 0; m < rows; ++m) {
      const V value = start ? all(start[m]) : V{};
      CLOPS_UNROLL for (int n = 0; n < columns; ++n) total[m][n] = value;
    }
    const float* w = packed;
    _Pragma("GCC unroll 1") for (int k = 0; k < terms; ++k, w += rows) {
      const int offset = offsets[k];
      V factor[columns];
      CLOPS_UNROLL for (int n = 0; n < columns; ++n) factor[n] = *reinterpret_cast<const V*>(at[n] + offset);
      CLOPS_UNROLL for (int m = 0; m < rows; ++m) {
        const V weight = all(w[m]);
        CLOPS_UNROLL for (int n = 0; n < columns; ++n) total[m][n] = fma(weight, factor[n], total[m][n]);
      }
    }
    const V least = all(floor);
    CLOPS_UNROLL for (int n = 0; n < columns; ++n) {
      float* to = y + gather.to.at[p + n];
      CLOPS_UNROLL for (int m = 0; m < rows; ++m) *reinterpret_cast<V*>(to + m * row) = maximum(least, total[m][n]);
    }
  }
}

constexpr float kNoFloor = -__builtin_inff();

// All products of one group of instances; `row` is the distance of Y's rows in vectors.
inline void multiply(const Gather& gather, int rows, const float* packed, const float* start, float floor, const V* x, V* y, int row) {
  const float* from = reinterpret_cast<const float*>(x);
  float* to = reinterpret_cast<float*>(y);
  const std::ptrdiff_t distance = static_cast<std::ptrdiff_t>(row) * kLanes;
  for (int first = 0; first < gather.positions(); first += kBlock) {
    const int last = first + kBlock < gather.positions() ? first + kBlock : gather.positions();
    for_row_tiles<kRows>(rows, [&](auto tile, int m) {
      constexpr int tile_rows = tile.value, columns = kProductColumns<tile_rows>;
      const auto function = last - first == 1 ? multiply_tile<tile_rows, 1> : multiply_tile<tile_rows, columns>;
      function(gather, first, last, packed + static_cast<std::ptrdiff_t>(m) * gather.terms(), start ? start + m : nullptr, floor, from,
               to + m * distance, distance);
    });
  }
}

constexpr int kPiece = 96;  // positions that are summed before the lanes are

// Adds the products of positions first ... last - 1 for rows m ... and terms k ... of one tile.
template <int rows>
inline void correlate_tile(const Gather& gather, int first, int last, int m, int k, const V* d, int row, const V* x, const Gradient& to,
                           std::ptrdiff_t parameter) {
  constexpr int columns = kLanes / rows;
  const float* at[columns];
  CLOPS_UNROLL for (int n = 0; n < columns; ++n) at[n] = reinterpret_cast<const float*>(x) + gather.offset.at[k + n];
  const V* rows_of_d[rows];
  CLOPS_UNROLL for (int i = 0; i < rows; ++i) rows_of_d[i] = d + static_cast<std::ptrdiff_t>(m + i) * row;
  const int* positions = gather.from.at.data();
  V total[kLanes];
  CLOPS_UNROLL for (int i = 0; i < kLanes; ++i) total[i] = V{};
  _Pragma("GCC unroll 1") for (int p = first; p < last; ++p) {
    const int position = positions[p];
    V factor[columns];
    CLOPS_UNROLL for (int n = 0; n < columns; ++n) factor[n] = *reinterpret_cast<const V*>(at[n] + position);
    CLOPS_UNROLL for (int i = 0; i < rows; ++i) {
      const V other = rows_of_d[i][p];
      CLOPS_UNROLL for (int n = 0; n < columns; ++n) total[i * columns + n] = fma(other, factor[n], total[i * columns + n]);
    }
  }
  const int width = gather.terms() - k < columns ? gather.terms() - k : columns;
  parameter += static_cast<std::ptrdiff_t>(m) * gather.terms() + k;
  if (to.each) {
    for (int i = 0; i < rows; ++i) {
      for (int n = 0; n < width; ++n) to.each[parameter + i * gather.terms() + n] += total[i * columns + n];
    }
    return;
  }
  const V by_term = sums(total);
  for (int i = 0; i < rows; ++i) {
    for (int n = 0; n < width; ++n) to.sums[parameter + i * gather.terms() + n] += by_term[i * columns + n];
  }
}

// All sums of one group of instances, added to the gradient of the parameters [rows][terms] from `parameter` on; `row` is the
// distance of D's rows in vectors.
inline void correlate(const Gather& gather, int rows, const V* d, int row, const V* x, const Gradient& to, std::ptrdiff_t parameter) {
  for (int first = 0; first < gather.positions(); first += kPiece) {
    const int last = first + kPiece < gather.positions() ? first + kPiece : gather.positions();
    for_row_tiles<4>(rows, [&](auto tile, int m) {
      constexpr int tile_rows = tile.value;
      for (int k = 0; k < gather.terms(); k += kLanes / tile_rows) {
        correlate_tile<tile_rows>(gather, first, last, m, k, d, row, x, to, parameter);
      }
    });
  }
}

}  // namespace clops::CLOPS_VARIANT
