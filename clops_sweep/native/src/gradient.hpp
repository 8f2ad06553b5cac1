// Loss and gradient of one batch: forward pass to the logits, gradient with respect to the logits, backward pass.
//
// Batch statistics couple all instances of a batch. So each block processes all groups of kLanes instances before the
// next: first its convolutions, then its statistics, then the rest of the block. With running statistics instances are
// independent, and each group passes forward and backward before the next group: its activations stay in the cache,
// which is too small for those of sixteen groups. Sums over groups have the same order in both cases.
#pragma once

#include "convolution.hpp"
#include "linear.hpp"
#include "losses.hpp"
#include "normalization.hpp"

namespace clops::CLOPS_VARIANT {

template <class Block>
struct Outputs {
  V z[2 * Block::outputs * Block::pairs];       // except in the first block, replaced by its gradient
  V h[Block::outputs * Block::pooled];          // replaced by the gradient passed on through it
};

// Activations of one group that are kept between two passes over the batch.
struct Activations {
  V frames[kFrame];
  Outputs<Block1> block1;
  Outputs<Block2> block2;
  Outputs<Block3> block3;
  V hidden[kHidden];  // replaced by its gradient
};

// Scratch memory of one block at a time.
template <class Block>
struct BlockScratch {
  V paired[Paired<Block>::rows * Block::pairs];
  float paired_gradient[Block::outputs * Paired<Block>::rows];
};

struct GradientScratch {
  float paired_weight2[Block2::outputs * Paired<Block2>::rows];
  float paired_weight3[Block3::outputs * Paired<Block3>::rows];
  Norm<Block1> norm1;
  Norm<Block2> norm2;
  Norm<Block3> norm3;
  NormSums<Block1> sums1;
  NormSums<Block2> sums2;
  NormSums<Block3> sums3;
  BlockScratch<Block2> block2;
  BlockScratch<Block3> block3;
};

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

inline std::size_t gradient_workspace(int count, int outputs) {
  const auto groups = static_cast<std::size_t>(groups_of(count));
  return aligned(sizeof(GradientScratch)) + groups * (aligned(sizeof(Activations)) + static_cast<std::size_t>(outputs) * sizeof(V));
}

// The state between forward and backward pass is in the workspace, which holds the groups that are processed side by
// side.
template <Normalization normalization>
class GradientOfBatch {
 public:
  GradientOfBatch(const Network<const float>& network, int outputs, int count, const Keys* keys, int side_by_side, void* workspace)
      : network_(network), outputs_(outputs), count_(count), groups_(side_by_side), keys_(keys), scale_(scale_of(keys)) {
    char* at = static_cast<char*>(workspace);
    scratch_ = reinterpret_cast<GradientScratch*>(at);
    activations_ = reinterpret_cast<Activations*>(at + aligned(sizeof(GradientScratch)));
    logits_ = reinterpret_cast<V*>(activations_ + groups_);
  }

  // Calls `pass` for the groups of the batch, as many at a time as are processed side by side: all, or one.
  template <class PassOfGroups>
  void for_groups(PassOfGroups pass) {
    for (first_group_ = 0; first_group_ < groups_of(count_); first_group_ += groups_) pass();
  }

  // The logits of a group, later their gradient; groups are counted from the first one in the workspace.
  V* logits(int g) { return logits_ + static_cast<std::ptrdiff_t>(g) * outputs_; }
  Group group(int g) const { return group_of(count_, first_group_ + g); }
  int groups() const { return groups_; }

  // Prepares the forward pass.
  void prepare(const Statistics<const float>& running) {
    pair_weights<Block2>(network_.conv_weight[1], scratch_->paired_weight2);
    pair_weights<Block3>(network_.conv_weight[2], scratch_->paired_weight3);
    const auto set = [&](int b, auto& norm) {
      running_norm(running.mean[b], running.variance[b], network_.norm_weight[b], network_.norm_bias[b], norm);
    };
    if constexpr (!coupled) set(0, scratch_->norm1), set(1, scratch_->norm2), set(2, scratch_->norm3);
  }

  void forward(const Instances& instances, const std::int64_t* draws, const Statistics<float>* tracked) {
    const auto pool_pairs = [&](int g, auto& block, const auto& norm, int c, int first, int last) __attribute__((always_inline)) {
      pool(c, first, last, block.z, norm, masks(draws, g), scale_, block.h);
    };
    // From last to first group: the backward pass begins with the first group, whose paired inputs are then still
    // there.
    for (int g = groups_ - 1; g >= 0; --g) {
      Activations& a = activations_[g];
      load_frames(instances, group(g), a.frames);
      // A few pairs at a time, so that with running statistics they are pooled while they are in the first-level cache.
      for_pieces<Block1::pairs, 24>([&](auto size, int first) __attribute__((always_inline)) {
        convolve_frames<size.value>(network_.conv_weight[0], network_.conv_bias[0], a.frames + 2 * kStride * first,
                                    StoreByParity<Block1>{a.block1.z + first});
        if constexpr (!coupled) {
          for (int c = 0; c < Block1::outputs; ++c) pool_pairs(g, a.block1, scratch_->norm1, c, first, first + size.value);
        }
      });
    }
    normalize<Block1>(0, &Activations::block1, tracked, scratch_->norm1);
    for (int g = groups_ - 1; g >= 0; --g) {
      Activations& a = activations_[g];
      forward<Block2>(1, scratch_->paired_weight2, a.block1.h, scratch_->block2, a.block2.z, [&](int c) __attribute__((always_inline)) {
        if constexpr (coupled) pool_pairs(g, a.block1, scratch_->norm1, c, 0, Block1::pooled);
      });
    }
    normalize<Block2>(1, &Activations::block2, tracked, scratch_->norm2);
    for (int g = groups_ - 1; g >= 0; --g) {
      Activations& a = activations_[g];
      forward<Block3>(2, scratch_->paired_weight3, a.block2.h, scratch_->block3, a.block3.z, [&](int c) __attribute__((always_inline)) {
        pool_pairs(g, a.block2, scratch_->norm2, c, 0, Block2::pooled);
      });
    }
    normalize<Block3>(2, &Activations::block3, tracked, scratch_->norm3);
    for (int g = groups_ - 1; g >= 0; --g) {
      Activations& a = activations_[g];
      for (int c = 0; c < Block3::outputs; ++c) pool_pairs(g, a.block3, scratch_->norm3, c, 0, Block3::pooled);
      linear1<1>(network_.linear1_weight, network_.linear1_bias, a.block3.h, a.hidden);
      linear2(network_.linear2_weight, network_.linear2_bias, outputs_, a.hidden, logits(g));
    }
  }

  // Sets everything that groups add to to 0, before the first backward pass.
  void clear(const Network<float>& gradient) {
    const auto clear = [](float* values, int n) { std::memset(values, 0, sizeof(float) * static_cast<std::size_t>(n)); };
    clear(gradient.conv_weight[0], kFrameWeights);
    clear(scratch_->block2.paired_gradient, Block2::outputs * Paired<Block2>::rows);
    clear(scratch_->block3.paired_gradient, Block3::outputs * Paired<Block3>::rows);
    clear(gradient.linear1_weight, kHidden * kFeatures);
    clear(gradient.linear1_bias, kHidden);
    clear(gradient.linear2_weight, outputs_ * kHidden);
    clear(gradient.linear2_bias, outputs_);
    scratch_->sums1 = {}, scratch_->sums2 = {}, scratch_->sums3 = {};
  }

  // The gradient with respect to the logits is in their place; unused lanes have 0.
  void backward(const Network<float>& gradient) {
    for (int g = 0; g < groups_; ++g) {
      Activations& a = activations_[g];
      differentiate_linear(network_, outputs_, logits(g), scale_, a.hidden, a.block3.h, gradient);
      for (int c = 0; c < Block3::outputs; ++c) reached(c, a.block3, scratch_->norm3, scratch_->sums3);
    }
    through_norm(&Activations::block3, scratch_->norm3, scratch_->sums3, [&](int g, auto& by_z) {
      Activations& a = activations_[g];
      in_place<Block3>(by_z, a.block3.z);
      backward_convolution<Block3>(g, scratch_->paired_weight3, a.block3.z, scratch_->block3, a.block2, scratch_->norm2, scratch_->sums2);
    });
    through_norm(&Activations::block2, scratch_->norm2, scratch_->sums2, [&](int g, auto& by_z) {
      Activations& a = activations_[g];
      in_place<Block2>(by_z, a.block2.z);
      backward_convolution<Block2>(g, scratch_->paired_weight2, a.block2.z, scratch_->block2, a.block1, scratch_->norm1, scratch_->sums1);
    });
    through_norm(&Activations::block1, scratch_->norm1, scratch_->sums1, [&](int g, auto& by_z) {
      V by_weight[2][kFrameWeights];
      correlate_frames(by_z, activations_[g].frames, by_weight);
      for (const auto& of_parity : by_weight) add_sums(of_parity, kFrameWeights, gradient.conv_weight[0]);
    });
  }

  // Computes gradients from the sums, after the last backward pass.
  void finish(const Network<float>& gradient) {
    unpair_weight_gradient<Block3>(scratch_->block3.paired_gradient, gradient.conv_weight[2]);
    unpair_weight_gradient<Block2>(scratch_->block2.paired_gradient, gradient.conv_weight[1]);
    finish<Block1>(0, scratch_->norm1, scratch_->sums1, gradient);
    finish<Block2>(1, scratch_->norm2, scratch_->sums2, gradient);
    finish<Block3>(2, scratch_->norm3, scratch_->sums3, gradient);
  }

  // Writes the gradient with respect to the logits, [count][outputs], in their place.
  void put_gradients(const float* by_logits) {
    for (int g = 0; g < groups_; ++g) {
      for (int c = 0; c < outputs_; ++c) {
        V& lanes = logits(g)[c];
        lanes = V{};
        for (int l = 0; l < group(g).count; ++l) lanes[l] = by_logits[(group(g).first + l) * outputs_ + c];
      }
    }
  }

 protected:
  static constexpr bool coupled = normalization == Normalization::batch;

  // With running statistics, outputs dropped by pooling have no effect.
  template <class Block>
  static constexpr int pairs = coupled ? Block::pairs : Block::pooled;

  Masks masks(const std::int64_t* draws, int g) const {
    std::int64_t of_group[kLanes] = {};
    if (keys_) for (int l = 0; l < kLanes; ++l) of_group[l] = draws[group(g).at(l)];
    return Masks(keys_, of_group);
  }

  template <class Block>
  void normalize(int b, Outputs<Block> Activations::*block, const Statistics<float>* tracked, Norm<Block>& norm) {
    if constexpr (coupled) {
      const auto z_of = [&](int g) { return (activations_[g].*block).z; };
      batch_norm(z_of, count_, network_.norm_weight[b], network_.norm_bias[b], norm, tracked ? tracked->mean[b] : nullptr,
                 tracked ? tracked->variance[b] : nullptr);
    }
  }

  // A convolution; `make_input` is called first, for each channel of the input.
  template <class Block, class MakeInput>
  void forward(int b, const float* paired_weight, const V* input, BlockScratch<Block>& scratch, V* z, MakeInput make_input) {
    for (int c = 0; c < Block::inputs; ++c) {
      make_input(c);
      pair_channel<Block, pairs<Block>>(c, input, scratch.paired);
    }
    convolve<Block, pairs<Block>>(paired_weight, network_.conv_bias[b], scratch.paired, StoreByParity<Block>{z});
  }

  // Called when the gradient has reached h of a channel: batch statistics need sums over all groups first.
  template <class Block>
  static void reached(int c, const Outputs<Block>& block, const Norm<Block>& norm, NormSums<Block>& sums) {
    if constexpr (coupled) {
      ByNorm found;
      add_by_norm(c, 0, Block::pooled, block.z, block.h, norm, found, [](int, V, auto) {});
      sums.add(c, found);
    }
  }

  // Calls `rest` for each group with a function that computes the gradient with respect to z, and sums up the gradient
  // with respect to the norm's parameters.
  template <class Block, class Rest>
  void through_norm(Outputs<Block> Activations::*block, const Norm<Block>& norm, NormSums<Block>& sums, Rest rest) {
    if constexpr (coupled) {
      const BatchGradient<Block> of_batch(norm, sums, static_cast<double>(count_) * Block::length);
      for (int g = 0; g < groups_; ++g) {
        const Outputs<Block>& outputs = activations_[g].*block;
        const V present = group(g).present();
        const auto by_z = [&](int c, int first, int last, V* even, V* odd) __attribute__((always_inline)) {
          of_batch(outputs.z, outputs.h, present, c, first, last, even, odd);
        };
        rest(g, by_z);
      }
    } else {
      for (int g = 0; g < groups_; ++g) {
        const Outputs<Block>& outputs = activations_[g].*block;
        RunningGradient<Block> by_z{outputs.z, outputs.h, norm, group(g).present()};
        rest(g, by_z);
        for (int c = 0; c < Block::outputs; ++c) sums.add(c, by_z.by_norm[c]);
      }
    }
  }

  template <class Block, class ByZ>
  static void in_place(ByZ& by_z, V* z) {
    for (int c = 0; c < Block::outputs; ++c) by_z(c, 0, pairs<Block>, z + c * Block::pairs, z + (Block::outputs + c) * Block::pairs);
  }

  // The gradient with respect to a block's norm and its convolution's bias.
  template <class Block>
  void finish(int b, const Norm<Block>& norm, const NormSums<Block>& sums, const Network<float>& gradient) const {
    for (int c = 0; c < Block::outputs; ++c) {
      gradient.norm_bias[b][c] = static_cast<float>(sums.by_shift[c]);
      gradient.norm_weight[b][c] = static_cast<float>(sums.by_gain[c] * norm.inverse[c]);
      gradient.conv_bias[b][c] = coupled ? 0.0f : static_cast<float>(sums.by_shift[c] * norm.gain[c]);
    }
  }

  // From the gradient with respect to z to that of the previous block's output.
  template <class Block, class Before>
  void backward_convolution(int g, const float* paired_weight, V* gradient, BlockScratch<Block>& scratch, Outputs<Before>& before,
                            const Norm<Before>& norm, NormSums<Before>& sums) const {
    if (g > 0) pair_inputs<Block, pairs<Block>>(before.h, scratch.paired);
    differentiate_convolution<Block, pairs<Block>>(paired_weight, gradient, scratch.paired, scratch.paired_gradient);
    for (int c = 0; c < Block::inputs; ++c) {
      unpair_channel<Block, pairs<Block>>(c, scratch.paired, scale_, before.h);
      reached(c, before, norm, sums);
    }
  }

  const Network<const float>& network_;
  const int outputs_, count_, groups_;
  int first_group_ = 0;
  const Keys* const keys_;
  const float scale_;
  GradientScratch* scratch_;
  Activations* activations_;
  V* logits_;
};

template <Normalization normalization>
inline void gradient_of(const Network<const float>& network, int outputs, Loss loss, const Statistics<const float>& running,
                        const Statistics<float>* tracked, const Batch& batch, Keys keys, const Network<float>& gradient_to, float* losses,
                        void* workspace) {
  const int count = batch.instances.count;
  GradientOfBatch<normalization> whole(network, outputs, count, &keys, normalization == Normalization::batch ? groups_of(count) : 1, workspace);
  whole.prepare(running);
  whole.clear(gradient_to);
  whole.for_groups([&] {
    whole.forward(batch.instances, batch.draws, tracked);
    for (int g = 0; g < whole.groups(); ++g) differentiate_loss(loss, whole.logits(g), outputs, whole.group(g), batch, losses);
    whole.backward(gradient_to);
  });
  whole.finish(gradient_to);
}

inline void gradient(const Network<const float>& network, int outputs, Loss loss, Normalization normalization,
                     const Statistics<const float>& running, const Statistics<float>* tracked, const Batch& batch, Keys keys,
                     const Network<float>& gradient_to, float* losses, void* workspace) {
  const auto of = normalization == Normalization::batch ? gradient_of<Normalization::batch> : gradient_of<Normalization::running>;
  of(network, outputs, loss, running, tracked, batch, keys, gradient_to, losses, workspace);
}

template <Normalization normalization>
inline void forward_of(const Network<const float>& network, int outputs, const Statistics<const float>& running,
                       const Statistics<float>* tracked, const Instances& instances, const std::int64_t* draws, const Pass& pass,
                       float* logits, void* workspace) {
  GradientOfBatch<normalization> half(network, outputs, instances.count, pass.keys, groups_of(instances.count), workspace);
  half.prepare(running);
  half.forward(instances, draws, tracked);
  for (int g = 0; g < half.groups(); ++g) {
    const Group group = half.group(g);
    for (int l = 0; l < group.count; ++l) {
      for (int c = 0; c < outputs; ++c) logits[(group.first + l) * outputs + c] = half.logits(g)[c][l];
    }
  }
}

inline void forward(const Network<const float>& network, int outputs, const Statistics<const float>& running,
                    const Statistics<float>* tracked, const Instances& instances, const std::int64_t* draws, const Pass& pass,
                    float* logits, void* workspace) {
  const auto of = pass.normalization == Normalization::batch ? forward_of<Normalization::batch> : forward_of<Normalization::running>;
  of(network, outputs, running, tracked, instances, draws, pass, logits, workspace);
}

template <Normalization normalization>
inline void backward_of(const Network<const float>& network, int outputs, int count, const Keys* keys, const float* by_logits,
                        const Network<float>& gradient_to, void* workspace) {
  GradientOfBatch<normalization> half(network, outputs, count, keys, groups_of(count), workspace);
  half.put_gradients(by_logits);
  half.clear(gradient_to);
  half.backward(gradient_to);
  half.finish(gradient_to);
}

inline void backward(const Network<const float>& network, int outputs, int count, const Pass& pass, const float* by_logits,
                     const Network<float>& gradient_to, void* workspace) {
  const auto of = pass.normalization == Normalization::batch ? backward_of<Normalization::batch> : backward_of<Normalization::running>;
  of(network, outputs, count, pass.keys, by_logits, gradient_to, workspace);
}

}  // namespace clops::CLOPS_VARIANT
