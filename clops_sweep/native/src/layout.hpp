// Layout of the paper's network in a flat vector: parameter by parameter, as in
// clops_sweep/learning/networks/network.py.
#pragma once

#include <array>

#include "kernels.hpp"

namespace clops {

constexpr int kChannels[4] = {1, 4, 16, 32};
constexpr std::size_t kFrameLength = 2500;

// Sizes of the sixteen parameters, in order.
inline std::array<std::size_t, 16> parameter_sizes(int outputs) {
  std::array<std::size_t, 16> sizes{};
  std::size_t n = 0;
  for (int block = 0; block < 3; ++block) {
    const auto channels = static_cast<std::size_t>(kChannels[block + 1]);
    sizes[n++] = channels * static_cast<std::size_t>(kChannels[block]) * 7;
    for (int i = 0; i < 3; ++i) sizes[n++] = channels;
  }
  const auto classes = static_cast<std::size_t>(outputs);
  sizes[12] = 100 * 320, sizes[13] = 100, sizes[14] = classes * 100, sizes[15] = classes;
  return sizes;
}

inline std::size_t parameter_count(int outputs) {
  std::size_t total = 0;
  for (const std::size_t size : parameter_sizes(outputs)) total += size;
  return total;
}

// Pointers to the parameters in a flat vector.
template <class T>
Network<T> network_of(T* flat, int outputs) {
  std::array<T*, 16> at{};
  const auto sizes = parameter_sizes(outputs);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    at[i] = flat;
    flat += sizes[i];
  }
  Network<T> network{};
  for (std::size_t block = 0; block < 3; ++block) {
    network.conv_weight[block] = at[4 * block];
    network.conv_bias[block] = at[4 * block + 1];
    network.norm_weight[block] = at[4 * block + 2];
    network.norm_bias[block] = at[4 * block + 3];
  }
  network.linear1_weight = at[12], network.linear1_bias = at[13];
  network.linear2_weight = at[14], network.linear2_bias = at[15];
  return network;
}

}  // namespace clops
