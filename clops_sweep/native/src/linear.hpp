// The two linear layers: Linear(320, 100) - ReLU, Linear(100, outputs).
#pragma once

#include "shapes.hpp"
#include "tile.hpp"

namespace clops::CLOPS_VARIANT {

constexpr int kLinearRows = kManyRegisters ? 20 : 10;

// hidden = ReLU(weight features + bias)
inline void linear1(const float* weight, const float* bias, const V* features, V* hidden) {
  for_tiles<kHidden, 1, kLinearRows, 1>([&](auto& tile, int m, int) __attribute__((always_inline)) {
    tile.start(V{});
    tile.multiply(kFeatures, {weight + m * kFeatures, 1, kFeatures}, {features, 1, 0});
    CLOPS_UNROLL for (int p = 0; p < kLinearRows; ++p) hidden[m + p] = maximum(tile.sum[p][0] + bias[m + p], V{});
  });
}

// logits = weight hidden + bias
inline void linear2(const float* weight, const float* bias, int outputs, const V* hidden, V* logits) {
  for (int c = 0; c < outputs; ++c, weight += kHidden) {
    V partial[4] = {all(bias[c])};
    for (int o = 0; o < kHidden; o += 4) {
      CLOPS_UNROLL for (int q = 0; q < 4; ++q) partial[q] = fma(all(weight[o + q]), hidden[o + q], partial[q]);
    }
    logits[c] = (partial[0] + partial[1]) + (partial[2] + partial[3]);
  }
}

// Backward through both layers for one group of instances: adds to the gradients by weights and biases, and writes the
// gradient by the features. `hidden` becomes the gradient by the first layer's output.
inline void differentiate_linear(const Network<const float>& network, int outputs, const V* logit_gradient, V* hidden,
                                 const V* features, const Network<float>& gradient, V* feature_gradient) {
  for (int o = 0; o < kHidden; o += 4) {
    for (int c = 0; c < outputs; ++c) {
      CLOPS_UNROLL for (int q = 0; q < 4; ++q) {
        gradient.linear2_weight[c * kHidden + o + q] += static_cast<float>(sum(logit_gradient[c] * hidden[o + q]));
      }
    }
    V by_hidden[4] = {};
    for (int c = 0; c < outputs; ++c) {
      const float* weight = network.linear2_weight + c * kHidden + o;
      CLOPS_UNROLL for (int q = 0; q < 4; ++q) by_hidden[q] = fma(all(weight[q]), logit_gradient[c], by_hidden[q]);
    }
    CLOPS_UNROLL for (int q = 0; q < 4; ++q) {
      hidden[o + q] = hidden[o + q] > 0.0f ? by_hidden[q] : V{};
      gradient.linear1_bias[o + q] += static_cast<float>(sum(hidden[o + q]));
    }
  }
  for (int c = 0; c < outputs; ++c) gradient.linear2_bias[c] += static_cast<float>(sum(logit_gradient[c]));

  // By the weights the sum runs over instances, and the features of one instance lie in the lanes.
  static_assert(kFeatures % kLanes == 0);
  constexpr int columns = kFeatures / kLanes;
  V transposed[kLanes][columns];
  for (int n = 0; n < columns; ++n) {
    V block[kLanes];
    CLOPS_UNROLL for (int l = 0; l < kLanes; ++l) block[l] = features[n * kLanes + l];
    transpose(block);
    CLOPS_UNROLL for (int l = 0; l < kLanes; ++l) transposed[l][n] = block[l];
  }
  const float* by_hidden = reinterpret_cast<const float*>(hidden);  // [hidden][lane]
  for_tiles<kHidden, columns, 4, kManyRegisters ? 5 : 2>([&](auto& tile, int m, int n) __attribute__((always_inline)) {
    constexpr int width = sizeof(tile.sum[0]) / sizeof(V);
    tile.start(V{});
    tile.multiply(kLanes, {by_hidden + m * kLanes, 1, kLanes}, {&transposed[0][n], columns, 1});
    CLOPS_UNROLL for (int p = 0; p < 4; ++p) CLOPS_UNROLL for (int q = 0; q < width; ++q) {
      float* to = gradient.linear1_weight + (m + p) * kFeatures + (n + q) * kLanes;
      store(to, load(to) + tile.sum[p][q]);
    }
  });
  for_tiles<kFeatures, 1, kLinearRows, 1>([&](auto& tile, int m, int) __attribute__((always_inline)) {
    tile.start(V{});
    tile.multiply(kHidden, {network.linear1_weight + m, kFeatures, 1}, {hidden, 1, 0});
    tile.store({feature_gradient + m, 1, 0});
  });
}

}  // namespace clops::CLOPS_VARIANT
