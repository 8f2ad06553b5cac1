// A vector of `kLanes` floats. In every kernel, lane l is instance l of a group of instances, so no kernel has to
// shuffle or pad within an instance.
//
// GCC's and Clang's vector extensions provide the operators. The operations below use intrinsics where they exist, so
// that neither fast-math options nor the compiler's freedom to fuse can change a result.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "kernels.hpp"

#if !defined(CLOPS_INLINE)
#define CLOPS_INLINE inline __attribute__((always_inline))
#endif
#define CLOPS_UNROLL _Pragma("GCC unroll 32")

namespace clops::CLOPS_VARIANT {

constexpr int kLanes = CLOPS_LANES;

typedef float V __attribute__((vector_size(4 * kLanes)));
typedef float LooseV __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));  // for unaligned memory
typedef std::int32_t I __attribute__((vector_size(4 * kLanes)));
typedef std::uint32_t U __attribute__((vector_size(4 * kLanes)));

// A vector anywhere in an array of floats. (As a template argument, LooseV would lose its alignment.)
struct Unaligned {
  LooseV value;

  CLOPS_INLINE operator V() const { return value; }
};

// Not V{} + x: since 0 + -0 is 0, the compiler could not remove that addition, which runs once per weight.
CLOPS_INLINE V all(float x) { return x - V{}; }
CLOPS_INLINE V load(const float* from) { return *reinterpret_cast<const LooseV*>(from); }
CLOPS_INLINE void store(float* to, V x) { *reinterpret_cast<LooseV*>(to) = x; }

// a * b + c, with a single rounding if the machine supports it.
CLOPS_INLINE V fma(V a, V b, V c) {
#if defined(__AVX512F__) && CLOPS_LANES == 16
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__) && CLOPS_LANES == 8
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

CLOPS_INLINE V maximum(V a, V b) {
#if defined(__AVX512F__) && CLOPS_LANES == 16
  return _mm512_maskz_max_ps(0xffff, a, b);  // GCC's own _mm512_max_ps reads an uninitialised vector
#elif defined(__AVX__) && CLOPS_LANES == 8
  return _mm256_max_ps(a, b);
#elif defined(__SSE2__) && CLOPS_LANES == 4
  return _mm_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}

// Exchanges the off-diagonal halves of two vectors, for the lanes whose number differs in bit h: first = (a without bit
// h, b without), second = (a with bit h, b with).
template <int h>
CLOPS_INLINE void exchange(V a, V b, V& first, V& second) {
  I low, high;
  CLOPS_UNROLL for (int l = 0; l < kLanes; ++l) {
    low[l] = l & h ? kLanes + (l ^ h) : l;
    high[l] = l & h ? kLanes + l : l ^ h;
  }
#if defined(__clang__)
  CLOPS_UNROLL for (int l = 0; l < kLanes; ++l) {
    first[l] = low[l] < kLanes ? a[low[l]] : b[low[l] - kLanes];
    second[l] = high[l] < kLanes ? a[high[l]] : b[high[l] - kLanes];
  }
#else
  first = __builtin_shuffle(a, b, low);
  second = __builtin_shuffle(a, b, high);
#endif
}

// Transposes kLanes vectors in place.
template <int h = kLanes / 2>
CLOPS_INLINE void transpose(V (&rows)[kLanes]) {
  CLOPS_UNROLL for (int i = 0; i < kLanes; ++i) {
    if (!(i & h)) {
      V first, second;
      exchange<h>(rows[i], rows[i + h], first, second);
      rows[i] = first;
      rows[i + h] = second;
    }
  }
  if constexpr (h > 1) transpose<h / 2>(rows);
}

// Lane i of the result is the sum over the lanes of vectors[i].
template <int h = kLanes / 2>
CLOPS_INLINE V sums(V (&vectors)[kLanes]) {
  CLOPS_UNROLL for (int i = 0; i < h; ++i) {
    V first, second;
    exchange<h>(vectors[i], vectors[i + h], first, second);
    vectors[i] = first + second;
  }
  if constexpr (h > 1) return sums<h / 2>(vectors);
  return vectors[0];
}

// The sum over the lanes of one vector, in double precision.
inline double sum(V x) {
  double total = 0;
  for (int l = 0; l < kLanes; ++l) total += x[l];
  return total;
}

}  // namespace clops::CLOPS_VARIANT
