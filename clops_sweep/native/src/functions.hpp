// Functions of vectors, from operations that round the same in every variant and lane. Errors are at most a few units in
// the last place unless noted.
#pragma once

#include "vector.hpp"

namespace clops::CLOPS_VARIANT {

CLOPS_INLINE V clamped(V x, float low, float high) {
  x = x < low ? all(low) : x;  // NaN stays NaN
  return x > high ? all(high) : x;
}

// exp(r) - 1 = r + r^2 / 2! + ... + r^7 / 7!, for |r| < 0.35
CLOPS_INLINE V exponential_series(V r) {
  constexpr float coefficients[] = {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f};
  V total = V{};
  CLOPS_UNROLL for (const float c : coefficients) total = fma(total, r, all(c));
  return total * r;
}

// exp(x) = 2^n exp(r), where n is the integer nearest to x / log 2, and r = x - n log 2.
CLOPS_INLINE V exponential(V x) {
  constexpr float log2_high = 0.693359375f, log2_low = -2.12194440e-4f, by_log2 = 1.44269504f;
  constexpr float integer = 12582912.0f;  // 1.5 * 2^23: a sum with it has no fraction
  x = clamped(x, -87.0f, 88.0f);
  const V n = (x * by_log2 + integer) - integer;
  const V r = fma(n, all(-log2_low), fma(n, all(-log2_high), x));
  const V power = reinterpret_cast<V>((__builtin_convertvector(n, I) + 127) << 23);
  return fma(exponential_series(r), power, power);
}

// exp(x) - 1
CLOPS_INLINE V exponential_minus_one(V x) {
  const V small = exponential_series(clamped(x, -0.35f, 0.35f));
  return ((x < 0.35f) & (x > -0.35f)) ? small : exponential(x) - 1.0f;
}

CLOPS_INLINE V hyperbolic_tangent(V x) {
  const V e = exponential_minus_one(x + x);
  return e / (e + 2.0f);
}

CLOPS_INLINE V sigmoid(V x) { return 1.0f / (1.0f + exponential(-x)); }

// log(x) of normal positive x: with x = m 2^n and m near 1, n log 2 + 2 artanh((m - 1) / (m + 1))
CLOPS_INLINE V logarithm(V x) {
  constexpr float log2_high = 0.693359375f, log2_low = -2.12194440e-4f;
  constexpr std::int32_t root = 0x3f3504f3;  // the bits of sqrt(1/2)
  const I shifted = reinterpret_cast<I>(x) - root;
  const I exponent = shifted >> 23;
  const V m = reinterpret_cast<V>(reinterpret_cast<I>(x) - (exponent << 23));
  const V n = __builtin_convertvector(exponent, V), s = (m - 1.0f) / (m + 1.0f), z = s * s;
  V series = all(2.0f / 9);
  constexpr float coefficients[] = {2.0f / 7, 2.0f / 5, 2.0f / 3, 2.0f};
  CLOPS_UNROLL for (const float c : coefficients) series = fma(series, z, all(c));
  const V found = fma(n, all(log2_low), series * s) + n * log2_high;
  return x == x ? found : x;
}

// The distribution function of the standard normal distribution, with an error of at most 1e-7 (Abramowitz and Stegun,
// Handbook of Mathematical Functions, 1964, formula 7.1.26).
CLOPS_INLINE V normal_distribution(V x) {
  constexpr float root_of_half = 0.70710678f;
  const V z = (x < 0.0f ? -x : x) * root_of_half;
  const V t = 1.0f / (1.0f + 0.3275911f * z);
  V series = all(1.061405429f);
  constexpr float coefficients[] = {-1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f};
  CLOPS_UNROLL for (const float c : coefficients) series = fma(series, t, all(c));
  const V tail = 0.5f * series * t * exponential(-z * z);
  return x < 0.0f ? tail : 1.0f - tail;
}

CLOPS_INLINE V normal_density(V x) { return 0.39894228f * exponential(-0.5f * x * x); }

}  // namespace clops::CLOPS_VARIANT
