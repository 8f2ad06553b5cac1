// What is made of the gradient of each instance's own loss, summed over instances: squares, or absolute values.
//
// Lanes are instances, and with running statistics no instance depends on another. So a pass backward has every entry of
// the gradient as a vector, one instance a lane, and the sum over lanes, which otherwise makes a number of it, comes
// after the square. Products of a weight's gradient, h x, are squared factor by factor.
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
class SumOfEach : public GradientOfBatch {
 public:
  using GradientOfBatch::GradientOfBatch;

  // From the gradient by the logits, which is where they were.
  void add_to(const Network<float>& sums) {
    for (int g = 0; g < groups_; ++g) {
      Activations& a = activations_[g];
      add_linear(logits(g), a, sums);
      add_block<Block3>(2, a.block3, scratch_->norm3, sums, g);
      add_convolution<Block3>(2, scratch_->paired_weight3, a.block3.z, scratch_->block3, a.block2.h, sums);
      add_block<Block2>(1, a.block2, scratch_->norm2, sums, g);
      add_convolution<Block2>(1, scratch_->paired_weight2, a.block2.z, scratch_->block2, a.block1.h, sums);
      add_block<Block1>(0, a.block1, scratch_->norm1, sums, g);
      add_frame_convolution(a.block1.z, a.frames, sums.conv_weight[0]);
    }
  }

 private:
  // to[i] += the sum over lanes of what is made of values[i]
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

  // By a block's norm and its convolution's bias; then z becomes the gradient by itself.
  template <class Block>
  void add_block(int b, Outputs<Block>& block, const Norm<Block>& norm, const Network<float>& sums, int g) {
    differentiate_running_norm(block.z, block.h, norm, group(g).present(), [&](int c, V by_shift, V by_gain) __attribute__((always_inline)) {
      sums.norm_bias[b][c] += static_cast<float>(sum(Of::of(by_shift)));
      sums.norm_weight[b][c] += static_cast<float>(sum(Of::of(by_gain * norm.inverse[c])));
      sums.conv_bias[b][c] += static_cast<float>(sum(Of::of(by_shift * norm.gain[c])));
    });
  }

  // to(m, n) = sum_k d(m, k) x(n, k), lane by lane, for four rows
  template <int columns>
  static void correlate(int terms, Matrix<const V> d, Matrix<const V> x, Matrix<V> to) {
    for_tiles<4, columns, 4, kLanes / 4>([&](auto& tile, int m, int n) __attribute__((always_inline)) {
      tile.start(V{});
      tile.correlate(terms, {d(m, 0), d.row, d.column}, {x(n, 0), x.row, x.column});
      tile.store({to(m, n), to.row, to.column});
    });
  }

  static void add_frame_convolution(const V* gradient, const V* frames, float* to) {
    constexpr int half = Block1::outputs * Block1::pairs, size = Block1::outputs * kKernel;
    V parts[2][size];
    for (int parity = 0; parity < 2; ++parity) {
      correlate<kKernel>(Block1::pairs, {gradient + parity * half, Block1::pairs, 1}, {frames + parity * kStride, 1, 2 * kStride},
                         {parts[parity], kKernel, 1});
    }
    for (int i = 0; i < size; ++i) parts[0][i] += parts[1][i];
    add<size>(parts[0], to);
  }

  template <class Block>
  void add_convolution(int b, const float* paired_weight, const V* gradient, BlockScratch<Block>& scratch, V* input,
                       const Network<float>& sums) const {
    using P = Paired<Block>;
    constexpr int row = Block::pairs, half = Block::outputs * row, size = 4 * Block::inputs * kKernel;
    static_assert(Block::outputs % 4 == 0);
    mix_parities<Block>(gradient, scratch.mixed);
    pair_inputs<Block>(input, scratch.paired);
    for (int m = 0; m < Block::outputs; m += 4) {
      V paired[4 * P::rows], weights[size];
      const auto fill = [&](auto rows, const V* outer, int part) {
        correlate<rows.value>(row, {outer + m * row, row, 1}, {scratch.paired + part * row, row, 1}, {paired + part, P::rows, 1});
      };
      constexpr Constant<3 * Block::inputs> three{};
      fill(three, gradient, P::a);
      fill(three, scratch.mixed, P::b);
      fill(Constant<Block::inputs>{}, scratch.mixed + half, P::c);
      fill(three, gradient + half, P::d);
      unpair_weight_gradient<Block, 4>(paired, weights);
      add<size>(weights, sums.conv_weight[b] + m * Block::inputs * kKernel);
    }
    input_gradient<Block>(paired_weight, gradient, scratch.mixed, scratch.paired);
    unpair_input_gradient<Block>(scratch.paired, scale_, input);
  }
};

template <class Of>
inline void add_each(const Network<const float>& network, int outputs, const Statistics<const float>& running, const Instances& instances,
                     const float* by_logits, const Network<float>& sums, void* workspace) {
  const Pass pass{Normalization::running, nullptr};
  SumOfEach<Of> each(network, outputs, instances.count, pass, 1, workspace);
  each.prepare();
  each.for_groups([&] {
    each.forward(instances, nullptr, running, nullptr);
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
