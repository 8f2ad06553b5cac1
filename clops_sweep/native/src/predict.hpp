// Evaluation: the network with running statistics, once without dropout or `samples` times with it.
//
// Batch norm is then a fixed affine map, folded into the convolutions: w g / sd and (b - mean) g / sd + shift. Dropout
// comes after the first block, which is therefore computed once for all samples.
#pragma once

#include "linear.hpp"
#include "losses.hpp"
#include "normalization.hpp"
#include "quads.hpp"

namespace clops::CLOPS_VARIANT {

template <class Block>
struct Folded {
  float weight[Block::outputs * Block::inputs * kKernel];
  float bias[Block::outputs];

  void fold(const Network<const float>& network, const Statistics<const float>& running, int b) {
    constexpr int taps = Block::inputs * kKernel;
    for (int c = 0; c < Block::outputs; ++c) {
      const float gain = network.norm_weight[b][c] / sqrtf(running.variance[b][c] + kEpsilon);
      bias[c] = (network.conv_bias[b][c] - running.mean[b][c]) * gain + network.norm_bias[b][c];
      for (int t = 0; t < taps; ++t) weight[c * taps + t] = network.conv_weight[b][c * taps + t] * gain;
    }
  }
};

// Number of samples, of one or several groups, that pass the linear layers together.
constexpr int kSets = 3;

struct PredictScratch {
  Folded<Block1> folded1;
  Folded<Block2> folded2;
  Folded<Block3> folded3;
  float weight2[Block2::outputs * Quad<Block2>::rows];
  float weight3[Block3::outputs * Quad<Block3>::rows];
  V frames[kFrame];
  V h1[Block1::outputs * Block1::pooled];
  V factors2[Quad<Block2>::rows * Quad<Block2>::count];
  V h2[Block2::outputs * Block2::pooled];
  V factors3[Quad<Block3>::rows * Quad<Block3>::count];
  V h3[kSets * kFeatures];
  V hidden[kSets * kHidden];
};

inline std::size_t predict_workspace(int outputs) {
  return (sizeof(PredictScratch) + 63) / 64 * 64 + static_cast<std::size_t>(outputs) * sizeof(V);
}

// The first block's output from its tiles, times `scale`.
struct PoolFrames {
  float scale;
  V* to;

  template <class T>
  CLOPS_INLINE void operator()(const T& even, const T& odd, int m, int n) const {
    constexpr int rows = sizeof(even.sum) / sizeof(even.sum[0]), columns = sizeof(even.sum[0]) / sizeof(V);
    CLOPS_UNROLL for (int p = 0; p < rows; ++p) CLOPS_UNROLL for (int q = 0; q < columns; ++q) {
      to[(m + p) * Block1::pooled + n + q] = maximum(maximum(even.sum[p][q], odd.sum[p][q]), V{}) * scale;
    }
  }
};

// The factors of a block's inputs, after dropout of the previous layer.
template <class Block, bool dropout>
inline void quad_inputs(const V* input, int first_unit, const Masks& masks, V* to) {
  for (int i = 0; i < Block::inputs; ++i) {
    const V* channel = input + i * Block::input_length;
    const int word = (first_unit + i * Block::input_length) / 2;
    const auto next = [&](int t, V& even, V& odd) __attribute__((always_inline)) {
      even = channel[t], odd = channel[t + 1];
      if constexpr (dropout) masks.apply(word + t / 2, even, odd);
    };
    V x[16];
    next(0, x[12], x[13]);
    next(2, x[14], x[15]);
    for (int j = 0; j < Quad<Block>::count; ++j) {
      CLOPS_UNROLL for (int t = 0; t < 4; ++t) x[t] = x[t + 12];
      CLOPS_UNROLL for (int t = 4; t < 16; t += 2) next(12 * j + t, x[t], x[t + 1]);
      quad_input<Block>(x, i, Quad<Block>::count, to + j);
    }
  }
}

// One sample of one group up to the linear layers: from s.h1 to `features`.
template <bool dropout>
inline void extract_features(PredictScratch& s, const Masks& masks, V* features) {
  constexpr float scale = dropout ? kScale : 1.0f;
  quad_inputs<Block2, dropout>(s.h1, Block1::first_unit, masks, s.factors2);
  convolve_and_pool<Block2>(s.weight2, s.folded2.bias, s.factors2, scale, s.h2);
  quad_inputs<Block3, dropout>(s.h2, Block2::first_unit, masks, s.factors3);
  convolve_and_pool<Block3>(s.weight3, s.folded3.bias, s.factors3, scale, features);
  if constexpr (dropout) {
    for (int f = 0; f < kFeatures; f += 2) masks.apply((Block3::first_unit + f) / 2, features[f], features[f + 1]);
  }
}

// Samples that share a vector: a small group leaves room for several samples of its instances. Lane l holds sample
// first + l / group.count of instance group.at(l).
struct Samples {
  Group group;
  int first, count;

  // The index of a lane's result, and the counter of its mask.
  CLOPS_INLINE std::int64_t of(int lane, int samples) const {
    return static_cast<std::int64_t>(group.at(lane)) * samples + first + lane / group.count;
  }
};

// Applies the linear layers to the first `sets` of the waiting samples, and writes the results.
inline void finish(PredictScratch& s, const Network<const float>& network, int outputs, Loss loss, const Prediction& what,
                   const Samples* waiting, int sets, V* logits, float* result) {
  (sets == 1 ? linear1<1> : sets == 2 ? linear1<2> : linear1<kSets>)(network.linear1_weight, network.linear1_bias, s.h3, s.hidden);
  for (int set = 0; set < sets; ++set) {
    const Samples& these = waiting[set];
    const int lanes = these.group.count * these.count;
    linear2(network.linear2_weight, network.linear2_bias, outputs, s.hidden + set * kHidden, logits);
    if (what.probabilities) to_probabilities(loss, logits, outputs, lanes);
    for (int l = 0; l < lanes; ++l) {
      float* to = result + these.of(l, what.samples) * outputs;
      for (int c = 0; c < outputs; ++c) to[c] = logits[c][l];
    }
  }
}

template <bool dropout>
inline void predict_all(PredictScratch& s, const Network<const float>& network, int outputs, Loss loss, const Instances& instances,
                        const Prediction& what, Keys keys, V* logits, float* result) {
  Samples waiting[kSets];
  int sets = 0;
  for (int g = 0; g < groups_of(instances.count); ++g) {
    const Group group = group_of(instances.count, g);
    load_frames(instances, group, s.frames);
    convolve_frames(s.folded1.weight, s.folded1.bias, s.frames, PoolFrames{dropout ? kScale : 1.0f, s.h1});
    const int room = kLanes / group.count;
    for (int first = 0; first < what.samples; first += room) {
      const Samples& these = waiting[sets] = {group, first, what.samples - first < room ? what.samples - first : room};
      std::int64_t draws[kLanes];
      for (int l = 0; l < kLanes; ++l) draws[l] = these.of(l, what.samples);
      extract_features<dropout>(s, Masks(&keys, draws), s.h3 + sets++ * kFeatures);
      if (sets == kSets) {
        finish(s, network, outputs, loss, what, waiting, sets, logits, result);
        sets = 0;
      }
    }
  }
  if (sets > 0) finish(s, network, outputs, loss, what, waiting, sets, logits, result);
}

inline void predict(const Network<const float>& network, int outputs, Loss loss, const Statistics<const float>& running,
                    const Instances& instances, const Prediction& what, Keys keys, float* result, void* workspace) {
  PredictScratch& s = *static_cast<PredictScratch*>(workspace);
  V* logits = reinterpret_cast<V*>(static_cast<char*>(workspace) + (sizeof(PredictScratch) + 63) / 64 * 64);
  s.folded1.fold(network, running, 0);
  s.folded2.fold(network, running, 1);
  s.folded3.fold(network, running, 2);
  quad_weights<Block2>(s.folded2.weight, s.weight2);
  quad_weights<Block3>(s.folded3.weight, s.weight3);
  const auto function = what.dropout ? predict_all<true> : predict_all<false>;
  function(s, network, outputs, loss, instances, what, keys, logits, result);
}

}  // namespace clops::CLOPS_VARIANT
