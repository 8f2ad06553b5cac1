// The two linear layers: Linear(320, 100) - ReLU, Linear(100, outputs).
#pragma once

#include "pairs.hpp"
#include "tile.hpp"

namespace clops::CLOPS_VARIANT {

// hidden = ReLU(weight features + bias) for several sets of features, [sets][320] to [sets][100], so that each weight
// is read once for all of them.
template <int sets>
inline void linear1(const float* weight, const float* bias, const V* features, V* hidden) {
  constexpr int rows = sets == 1 ? (kManyRegisters ? 20 : 10) : (kManyRegisters ? 5 : 4);
  for_tiles<kHidden, sets, rows, sets>([&](auto& tile, int m, int) __attribute__((always_inline)) {
    tile.start(V{});
    tile.multiply(kFeatures, {weight + m * kFeatures, 1, kFeatures}, {features, 1, kFeatures});
    CLOPS_UNROLL for (int p = 0; p < rows; ++p) CLOPS_UNROLL for (int q = 0; q < sets; ++q) {
      hidden[q * kHidden + m + p] = maximum(tile.sum[p][q] + bias[m + p], V{});
    }
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

// Transposes [kFeatures] vectors over instances to [kLanes] instances of kFeatures numbers each, and back.
static_assert(kFeatures % kLanes == 0);
constexpr int kFeatureVectors = kFeatures / kLanes;
using FeaturesByInstance = V[kLanes][kFeatureVectors];

inline void by_instance(const V* features, FeaturesByInstance& to) {
  for (int n = 0; n < kFeatureVectors; ++n) {
    V block[kLanes];
    CLOPS_UNROLL for (int l = 0; l < kLanes; ++l) block[l] = features[n * kLanes + l];
    transpose(block);
    CLOPS_UNROLL for (int l = 0; l < kLanes; ++l) to[l][n] = block[l];
  }
}

// Transposes gradients back to vectors over instances, passed on through the features.
inline void by_feature(const FeaturesByInstance& gradient, float scale, V* features) {
  for (int n = 0; n < kFeatureVectors; ++n) {
    V block[kLanes];
    CLOPS_UNROLL for (int l = 0; l < kLanes; ++l) block[l] = gradient[l][n];
    transpose(block);
    V* h = features + n * kLanes;
    CLOPS_UNROLL for (int l = 0; l < kLanes; ++l) h[l] = through(h[l], block[l], scale);
  }
}

// to[o] += the sum over instances of values[o]
inline void add_sums(const V* values, int count, float* to) {
  for (int first = 0; first < count; first += kLanes) {
    const int width = count - first < kLanes ? count - first : kLanes;
    V block[kLanes] = {};
    for (int i = 0; i < width; ++i) block[i] = values[first + i];
    const V total = sums(block);
    for (int i = 0; i < width; ++i) to[first + i] += total[i];
  }
}

// Replaces `hidden` by the gradient with respect to the first layer's output.
inline void differentiate_hidden(const Network<const float>& network, int outputs, const V* logit_gradient, V* hidden) {
  V by_hidden[kHidden] = {};
  for (int c = 0; c < outputs; ++c) {
    const float* weight = network.linear2_weight + c * kHidden;
    for (int o = 0; o < kHidden; ++o) by_hidden[o] = fma(all(weight[o]), logit_gradient[c], by_hidden[o]);
  }
  for (int o = 0; o < kHidden; ++o) hidden[o] = hidden[o] > 0.0f ? by_hidden[o] : V{};
}

constexpr int kFeatureColumns = kManyRegisters ? 5 : 2;

// to[o][i] += the sum over instances of hidden[o] features[i]
//
// The sum runs over instances, and the weights of a row are adjacent. So here lanes are features, and instances are
// terms.
inline void add_products(const V* hidden, const FeaturesByInstance& features, float* to_weight) {
  const float* of_instance = reinterpret_cast<const float*>(hidden);  // [hidden][instance]
  for_tiles<kHidden, kFeatureVectors, 4, kFeatureColumns>([&](auto& tile, int m, int n) __attribute__((always_inline)) {
    constexpr int width = sizeof(tile.sum[0]) / sizeof(V);
    tile.start(V{});
    tile.multiply(kLanes, {of_instance + m * kLanes, 1, kLanes}, {&features[0][n], kFeatureVectors, 1});
    CLOPS_UNROLL for (int p = 0; p < 4; ++p) CLOPS_UNROLL for (int q = 0; q < width; ++q) {
      float* to = to_weight + (m + p) * kFeatures + (n + q) * kLanes;
      store(to, load(to) + tile.sum[p][q]);
    }
  });
}

// The gradient passed on through the features, written in their place, given that of the first layer's output with
// instances as rows. `turned` is overwritten.
inline void differentiate_features(const Network<const float>& network, const V* hidden, FeaturesByInstance& turned, float scale,
                                   V* features) {
  const float* of_instance = reinterpret_cast<const float*>(hidden);
  const auto* weight = reinterpret_cast<const Unaligned*>(network.linear1_weight);
  for_tiles<kLanes, kFeatureVectors, 4, kFeatureColumns>([&](auto& tile, int m, int n) __attribute__((always_inline)) {
    tile.start(V{});
    tile.multiply(kHidden, {of_instance + m, kLanes, 1}, Matrix<const Unaligned>{weight + n, kFeatureVectors, 1});
    tile.store({&turned[m][n], kFeatureVectors, 1});
  });
  by_feature(turned, scale, features);
}

// Backward pass through both layers for a group of instances: adds to the gradients of weights and biases. `hidden` and
// `features` are replaced by the gradients with respect to them.
inline void differentiate_linear(const Network<const float>& network, int outputs, const V* logit_gradient, float scale, V* hidden,
                                 V* features, const Network<float>& gradient) {
  add_sums(logit_gradient, outputs, gradient.linear2_bias);
  for (int c = 0; c < outputs; ++c) {
    V by_weight[kHidden];
    for (int o = 0; o < kHidden; ++o) by_weight[o] = logit_gradient[c] * hidden[o];
    add_sums(by_weight, kHidden, gradient.linear2_weight + c * kHidden);
  }
  differentiate_hidden(network, outputs, logit_gradient, hidden);
  add_sums(hidden, kHidden, gradient.linear1_bias);
  FeaturesByInstance turned;
  by_instance(features, turned);
  add_products(hidden, turned, gradient.linear1_weight);
  differentiate_features(network, hidden, turned, scale, features);
}

}  // namespace clops::CLOPS_VARIANT
