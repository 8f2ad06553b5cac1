// Sums over instances of the squares or absolute values of each instance's gradient.
//
// Lanes are instances, and with running statistics instances are independent. So a backward pass yields every entry of
// the gradient as a vector with one instance per lane. It is squared first, and then summed over the lanes. Products h
// x in a weight's gradient are squared factor by factor.
#pragma once

#include "gradient.hpp"

namespace clops::CLOPS_VARIANT {

struct Square {
  CLOPS_INLINE static V of(V x) { return x * x; }
};
struct Absolute {
  CLOPS_INLINE static V of(V x) { return maximum(x, -x); }
};

template <class Of>
class SumOfEach : public GradientOfBatch<Normalization::running> {
 public:
  using Base = GradientOfBatch<Normalization::running>;
  using Base::Base;

  // From the gradient with respect to the logits, which is in their place.
  void add_to(const Network<float>& sums) {
    for (int g = 0; g < groups_; ++g) {
      Activations& a = activations_[g];
      add_linear(logits(g), a, sums);
      add_block<Block3>(2, a.block3, scratch_->norm3, sums, g);
      add_convolution<Block3>(2, scratch_->paired_weight3, a.block3.z, scratch_->block3, a.block2.h, sums);
      add_block<Block2>(1, a.block2, scratch_->norm2, sums, g);
      add_convolution<Block2>(1, scratch_->paired_weight2, a.block2.z, scratch_->block2, a.block1.h, sums);
      RunningGradient<Block1> by_z{a.block1.z, a.block1.h, scratch_->norm1, group(g).present()};
      V by_weight[2][kFrameWeights];
      correlate_frames(by_z, a.frames, by_weight);
      for (int i = 0; i < kFrameWeights; ++i) by_weight[0][i] += by_weight[1][i];
      add<kFrameWeights>(by_weight[0], sums.conv_weight[0]);
      add_norm<Block1>(0, by_z, sums);
    }
  }

 private:
  // to[i] += the sum over lanes of the square or absolute value of values[i]
  template <int count>
  static void add(const V* values, float* to) {
    V made[count];
    for (int i = 0; i < count; ++i) made[i] = Of::of(values[i]);
    add_sums(made, count, to);
  }

  void add_linear(const V* logit_gradient, Activations& a, const Network<float>& sums) {
    V by_weight[kHidden];
    for (int c = 0; c < outputs_; ++c) {
      add<1>(logit_gradient + c, sums.linear2_bias + c);
      for (int o = 0; o < kHidden; ++o) by_weight[o] = logit_gradient[c] * a.hidden[o];
      add<kHidden>(by_weight, sums.linear2_weight + c * kHidden);
    }
    differentiate_hidden(network_, outputs_, logit_gradient, a.hidden);
    add<kHidden>(a.hidden, sums.linear1_bias);
    FeaturesByInstance turned;
    V made[kFeatures];
    for (int o = 0; o < kHidden; ++o) by_weight[o] = Of::of(a.hidden[o]);
    for (int i = 0; i < kFeatures; ++i) made[i] = Of::of(a.block3.h[i]);
    by_instance(made, turned);
    add_products(by_weight, turned, sums.linear1_weight);
    differentiate_features(network_, a.hidden, turned, scale_, a.block3.h);
  }

  // With respect to a block's norm and its convolution's bias; z is replaced by its gradient.
  template <class Block>
  void add_block(int b, Outputs<Block>& block, const Norm<Block>& norm, const Network<float>& sums, int g) {
    RunningGradient<Block> by_z{block.z, block.h, norm, group(g).present()};
    in_place<Block>(by_z, block.z);
    add_norm<Block>(b, by_z, sums);
  }

  template <class Block>
  static void add_norm(int b, const RunningGradient<Block>& by_z, const Network<float>& sums) {
    for (int c = 0; c < Block::outputs; ++c) {
      const V by_shift = by_z.by_norm[c].by_shift(), by_gain = by_z.by_norm[c].by_gain();
      sums.norm_bias[b][c] += static_cast<float>(sum(Of::of(by_shift)));
      sums.norm_weight[b][c] += static_cast<float>(sum(Of::of(by_gain * by_z.norm.inverse[c])));
      sums.conv_bias[b][c] += static_cast<float>(sum(Of::of(by_shift * by_z.norm.gain[c])));
    }
  }

  // to(m, n) = sum_k d(m, k) x(n, k), per lane, for four rows
  template <int columns>
  static void correlate(int terms, Matrix<const V> d, Matrix<const V> x, Matrix<V> to) {
    for_tiles<4, columns, 4, kLanes / 4>([&](auto& tile, int m, int n) __attribute__((always_inline)) {
      tile.start(V{});
      tile.correlate(terms, {d(m, 0), d.row, d.column}, {x(n, 0), x.row, x.column});
      tile.store({to(m, n), to.row, to.column});
    });
  }

  template <class Block>
  void add_convolution(int b, const float* paired_weight, V* gradient, BlockScratch<Block>& scratch, V* input,
                       const Network<float>& sums) const {
    using P = Paired<Block>;
    constexpr int row = Block::pairs, half = Block::outputs * row, size = 4 * Block::inputs * kKernel;
    static_assert(Block::outputs % 4 == 0);
    V mixed[2 * half];
    mix_parities<Block>(gradient, mixed);
    pair_inputs<Block, pairs<Block>>(input, scratch.paired);
    for (int m = 0; m < Block::outputs; m += 4) {
      V paired[4 * P::rows], weights[size];
      const auto fill = [&](auto rows, const V* outer, int part) {
        correlate<rows.value>(pairs<Block>, {outer + m * row, row, 1}, {scratch.paired + part * row, row, 1}, {paired + part, P::rows, 1});
      };
      constexpr Constant<3 * Block::inputs> three{};
      fill(three, gradient, P::a);
      fill(three, mixed, P::b);
      fill(Constant<Block::inputs>{}, mixed + half, P::c);
      fill(three, gradient + half, P::d);
      unpair_weight_gradient<Block, 4>(paired, weights);
      add<size>(weights, sums.conv_weight[b] + m * Block::inputs * kKernel);
    }
    for_factors<Block>(gradient, [&](auto count, const V* outer, int part) {
      input_gradient<Block, count.value, pairs<Block>>(paired_weight, outer, part, scratch.paired);
    });
    for (int c = 0; c < Block::inputs; ++c) unpair_channel<Block, pairs<Block>>(c, scratch.paired, scale_, input);
  }
};

template <class Of>
inline void add_each(const Network<const float>& network, int outputs, const Statistics<const float>& running, const Instances& instances,
                     const float* by_logits, const Network<float>& sums, void* workspace) {
  SumOfEach<Of> each(network, outputs, instances.count, nullptr, 1, workspace);
  each.prepare(running);
  each.for_groups([&] {
    each.forward(instances, nullptr, nullptr);
    each.put_gradients(by_logits);
    each.add_to(sums);
  });
}

inline void sum_of_each(const Network<const float>& network, int outputs, const Statistics<const float>& running,
                        const Instances& instances, const float* by_logits, Each each, const Network<float>& sums, void* workspace) {
  const auto add = each == Each::square ? add_each<Square> : add_each<Absolute>;
  add(network, outputs, running, instances, by_logits, sums, workspace);
}

}  // namespace clops::CLOPS_VARIANT
