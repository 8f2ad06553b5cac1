// Sums over adjacent vectors, with four accumulators, so that additions run in parallel.
#pragma once

#include "vector.hpp"

namespace clops::CLOPS_VARIANT {

// Calls `body(i, accumulator)` for i < count.
template <class Body>
CLOPS_INLINE void for_fours(int count, Body body) {
  int i = 0;
  for (; i + 4 <= count; i += 4) CLOPS_UNROLL for (int q = 0; q < 4; ++q) body(i + q, q);
  for (; i < count; ++i) body(i, 0);
}

// The sum of term(i), i < count, for each lane.
template <class Term>
CLOPS_INLINE V sum_of(int count, Term term) {
  V partial[4] = {};
  for_fours(count, [&](int i, int q) __attribute__((always_inline)) { partial[q] += term(i); });
  return (partial[0] + partial[1]) + (partial[2] + partial[3]);
}

inline V sum_of(const V* row, int count) {
  return sum_of(count, [row](int i) __attribute__((always_inline)) { return row[i]; });
}

typedef double Doubles __attribute__((vector_size(8 * kLanes)));

// Arguments are references, since compilers differ on how such large vectors are passed.
CLOPS_INLINE void add_to(Doubles& total, const V& x) { total += __builtin_convertvector(x, Doubles); }
CLOPS_INLINE V floats(const Doubles& x) { return __builtin_convertvector(x, V); }

}  // namespace clops::CLOPS_VARIANT
