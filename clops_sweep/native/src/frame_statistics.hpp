// Minimum, maximum, mean and standard deviation of stored frames, in float64.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

namespace clops {

typedef double Eight __attribute__((vector_size(64)));

// By reference, since the calling convention of vectors depends on the instruction set.
inline void load(const double* from, Eight& to) { std::memcpy(&to, from, sizeof to); }

// The sum of n numbers in numpy's order: up to 128 numbers are eight sums of every eighth number, more are split into
// two parts. Its error grows with log(n) (pairwise summation; Higham 1993).
inline double pairwise(const double* values, std::size_t n) {
  if (n > 128) {
    const std::size_t first = n / 2 / 8 * 8;
    return pairwise(values, first) + pairwise(values + first, n - first);
  }
  double sum = 0;
  std::size_t i = 0;
  if (n >= 8) {
    Eight sums, next;
    load(values, sums);
    for (i = 8; i + 8 <= n; i += 8) {
      load(values + i, next);
      sums += next;
    }
    sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  }
  for (; i < n; ++i) sum += values[i];
  return sum;
}

// Statistics [rows, 4] of frames [rows, samples]. A row with NaN or infinity has a minimum or maximum that is not
// finite.
template <class T>
void frame_statistics(const T* from, std::size_t rows, std::size_t samples, double* to) {
  std::vector<double> values(samples);
  const auto count = static_cast<double>(samples);
  for (std::size_t row = 0; row < rows; ++row, from += samples, to += 4) {
    T low = from[0], high = from[0];
    bool strange = false;
    for (std::size_t i = 0; i < samples; ++i) {
      low = from[i] < low ? from[i] : low;
      high = from[i] > high ? from[i] : high;
      strange |= from[i] != from[i];
      values[i] = static_cast<double>(from[i]);
    }
    const double mean = pairwise(values.data(), samples) / count;
    for (double& value : values) value = (value - mean) * (value - mean);
    to[0] = strange ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(low);
    to[1] = strange ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(high);
    to[2] = mean;
    to[3] = std::sqrt(pairwise(values.data(), samples) / count);
  }
}

}  // namespace clops
