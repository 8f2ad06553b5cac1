// Loss and gradient of one batch: forward to the logits, what is to be made of them, and backward.
//
// Batch statistics couple all instances of a batch, so the groups of kLanes instances go through the network side by
// side: each block's convolutions for all groups, then its statistics, then the rest of the block for all groups. With
// running statistics no instance depends on another, and one group after the other goes there and back: what has to be
// kept of it stays in the cache, which sixteen groups do not fit into. Sums over groups are the same ones either way.
#pragma once

#include "convolution.hpp"
#include "linear.hpp"
#include "losses.hpp"
#include "normalization.hpp"

namespace clops::CLOPS_VARIANT {

template <class Block>
struct Outputs {
  V z[2 * Block::outputs * Block::pairs];       // becomes the gradient by itself
  V h[Block::outputs * Block::pooled];          // becomes the gradient that goes on through it
};

// What has to be kept of one group between two passes over the batch.
struct Activations {
  V frames[kFrame];
  Outputs<Block1> block1;
  Outputs<Block2> block2;
  Outputs<Block3> block3;
  V hidden[kHidden];  // becomes the gradient by itself
};

// What belongs to one block at a time.
template <class Block>
struct BlockScratch {
  V paired[Paired<Block>::rows * Block::pairs];
  V mixed[2 * Block::outputs * Block::pairs];
  float paired_gradient[Block::outputs * Paired<Block>::rows];
};

// The gradient by a block's norm, summed over the groups so far.
template <class Block>
struct NormSums {
  double by_shift[Block::outputs], by_gain[Block::outputs];
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

// What a pass forward leaves for the one backward is all in the workspace, which holds as many groups as are side by side.
class GradientOfBatch {
 public:
  GradientOfBatch(const Network<const float>& network, int outputs, int count, const Pass& pass, int side_by_side, void* workspace)
      : network_(network), outputs_(outputs), count_(count), groups_(side_by_side), pass_(pass), scale_(scale_of(pass.keys)) {
    char* at = static_cast<char*>(workspace);
    scratch_ = reinterpret_cast<GradientScratch*>(at);
    activations_ = reinterpret_cast<Activations*>(at + aligned(sizeof(GradientScratch)));
    logits_ = reinterpret_cast<V*>(activations_ + groups_);
  }

  // Calls `pass` for the groups of the batch, as many at a time as are side by side: all, or one.
  template <class PassOfGroups>
  void for_groups(PassOfGroups pass) {
    for (first_group_ = 0; first_group_ < groups_of(count_); first_group_ += groups_) pass();
  }

  // What the logits of a group become the gradient by themselves in; groups count from the first of those at hand.
  V* logits(int g) { return logits_ + static_cast<std::ptrdiff_t>(g) * outputs_; }
  Group group(int g) const { return group_of(count_, first_group_ + g); }
  int groups() const { return groups_; }

  // Before the first pass forward.
  void prepare() {
    pair_weights<Block2>(network_.conv_weight[1], scratch_->paired_weight2);
    pair_weights<Block3>(network_.conv_weight[2], scratch_->paired_weight3);
  }

  void forward(const Instances& instances, const std::int64_t* draws, const Statistics<const float>& running,
               const Statistics<float>* tracked) {
    for (int g = 0; g < groups_; ++g) {
      Activations& a = activations_[g];
      load_frames(instances, group(g), a.frames);
      convolve_frames(network_.conv_weight[0], network_.conv_bias[0], a.frames, StoreByParity<Block1>{a.block1.z});
    }
    normalize<Block1>(0, &Activations::block1, running, tracked, scratch_->norm1);
    for (int g = 0; g < groups_; ++g) {
      Activations& a = activations_[g];
      pool(a.block1.z, scratch_->norm1, masks(draws, g), scale_, a.block1.h);
      forward<Block2>(1, scratch_->paired_weight2, a.block1.h, scratch_->block2, a.block2.z);
    }
    normalize<Block2>(1, &Activations::block2, running, tracked, scratch_->norm2);
    for (int g = 0; g < groups_; ++g) {
      Activations& a = activations_[g];
      pool(a.block2.z, scratch_->norm2, masks(draws, g), scale_, a.block2.h);
      forward<Block3>(2, scratch_->paired_weight3, a.block2.h, scratch_->block3, a.block3.z);
    }
    normalize<Block3>(2, &Activations::block3, running, tracked, scratch_->norm3);
    for (int g = 0; g < groups_; ++g) {
      Activations& a = activations_[g];
      pool(a.block3.z, scratch_->norm3, masks(draws, g), scale_, a.block3.h);
      linear1<1>(network_.linear1_weight, network_.linear1_bias, a.block3.h, a.hidden);
      linear2(network_.linear2_weight, network_.linear2_bias, outputs_, a.hidden, logits(g));
    }
  }

  // Everything that groups add to becomes 0, before the first pass backward.
  void clear(const Network<float>& gradient) {
    const auto clear = [](float* values, int n) { std::memset(values, 0, sizeof(float) * static_cast<std::size_t>(n)); };
    clear(gradient.conv_weight[0], Block1::outputs * kKernel);
    clear(scratch_->block2.paired_gradient, Block2::outputs * Paired<Block2>::rows);
    clear(scratch_->block3.paired_gradient, Block3::outputs * Paired<Block3>::rows);
    clear(gradient.linear1_weight, kHidden * kFeatures);
    clear(gradient.linear1_bias, kHidden);
    clear(gradient.linear2_weight, outputs_ * kHidden);
    clear(gradient.linear2_bias, outputs_);
    scratch_->sums1 = {}, scratch_->sums2 = {}, scratch_->sums3 = {};
  }

  // The gradient by the logits has taken their place; lanes without an instance have 0.
  void backward(const Network<float>& gradient) {
    for (int g = 0; g < groups_; ++g) {
      Activations& a = activations_[g];
      differentiate_linear(network_, outputs_, logits(g), scale_, a.hidden, a.block3.h, gradient);
    }
    backward<Block3>(&Activations::block3, scratch_->norm3, scratch_->sums3, [&](Activations& a) {
      backward_convolution<Block3>(scratch_->paired_weight3, a.block3.z, scratch_->block3, a.block2.h);
    });
    backward<Block2>(&Activations::block2, scratch_->norm2, scratch_->sums2, [&](Activations& a) {
      backward_convolution<Block2>(scratch_->paired_weight2, a.block2.z, scratch_->block2, a.block1.h);
    });
    backward<Block1>(&Activations::block1, scratch_->norm1, scratch_->sums1, [&](Activations& a) {
      add_frame_weight_gradient(a.block1.z, a.frames, gradient.conv_weight[0]);
    });
  }

  // After the last pass backward: what is made of the sums.
  void finish(const Network<float>& gradient) {
    unpair_weight_gradient<Block3>(scratch_->block3.paired_gradient, gradient.conv_weight[2]);
    unpair_weight_gradient<Block2>(scratch_->block2.paired_gradient, gradient.conv_weight[1]);
    finish<Block1>(0, scratch_->norm1, scratch_->sums1, gradient);
    finish<Block2>(1, scratch_->norm2, scratch_->sums2, gradient);
    finish<Block3>(2, scratch_->norm3, scratch_->sums3, gradient);
  }

  // Puts gradients by the logits, [count][outputs], in their place.
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
  Masks masks(const std::int64_t* draws, int g) const {
    std::int64_t of_group[kLanes] = {};
    if (pass_.keys) for (int l = 0; l < kLanes; ++l) of_group[l] = draws[group(g).at(l)];
    return Masks(pass_.keys, of_group);
  }

  template <class Block>
  void normalize(int b, Outputs<Block> Activations::*block, const Statistics<const float>& running, const Statistics<float>* tracked,
                 Norm<Block>& norm) {
    const float *weight = network_.norm_weight[b], *bias = network_.norm_bias[b];
    if (pass_.normalization == Normalization::running) {
      running_norm(running.mean[b], running.variance[b], weight, bias, norm);
      return;
    }
    const auto z_of = [&](int g) { return (activations_[g].*block).z; };
    batch_norm(z_of, count_, weight, bias, norm, tracked ? tracked->mean[b] : nullptr, tracked ? tracked->variance[b] : nullptr);
  }

  template <class Block>
  void forward(int b, const float* paired_weight, const V* input, BlockScratch<Block>& scratch, V* z) {
    pair_inputs<Block>(input, scratch.paired);
    convolve<Block>(paired_weight, network_.conv_bias[b], scratch.paired, StoreByParity<Block>{z});
  }

  bool coupled() const { return pass_.normalization == Normalization::batch; }

  // The gradient by a block's norm, and for each group the gradient by z, in place of it; then what `rest` makes of it.
  // With batch statistics all groups are at hand, and the sums are whole before they are used; with running ones nothing
  // but the gradient by the norm's own parameters is made of them.
  template <class Block, class Rest>
  void backward(Outputs<Block> Activations::*block, const Norm<Block>& norm, NormSums<Block>& sums, Rest rest) {
    if (!coupled()) {
      for (int g = 0; g < groups_; ++g) {
        Outputs<Block>& outputs = activations_[g].*block;
        differentiate_running_norm(outputs.z, outputs.h, norm, group(g).present(), [&](int c, V shift, V gain) __attribute__((always_inline)) {
          sums.by_shift[c] += sum(shift);
          sums.by_gain[c] += sum(gain);
        });
        rest(activations_[g]);
      }
      return;
    }
    for (int g = 0; g < groups_; ++g) {
      const Outputs<Block>& outputs = activations_[g].*block;
      add_norm_gradient(outputs.z, outputs.h, norm, sums.by_shift, sums.by_gain);
    }
    const double n = static_cast<double>(count_) * Block::length;
    float mean_gradient[Block::outputs], variance_gradient[Block::outputs];
    for (int c = 0; c < Block::outputs; ++c) {
      mean_gradient[c] = static_cast<float>(sums.by_shift[c] / n);
      variance_gradient[c] = static_cast<float>(sums.by_gain[c] * norm.inverse[c] * norm.inverse[c] / n);
    }
    for (int g = 0; g < groups_; ++g) {
      Outputs<Block>& outputs = activations_[g].*block;
      differentiate_norm(outputs.z, outputs.h, norm, mean_gradient, variance_gradient, group(g).present());
      rest(activations_[g]);
    }
  }

  // The gradient by a block's norm and its convolution's bias.
  template <class Block>
  void finish(int b, const Norm<Block>& norm, const NormSums<Block>& sums, const Network<float>& gradient) const {
    for (int c = 0; c < Block::outputs; ++c) {
      gradient.norm_bias[b][c] = static_cast<float>(sums.by_shift[c]);
      gradient.norm_weight[b][c] = static_cast<float>(sums.by_gain[c] * norm.inverse[c]);
      gradient.conv_bias[b][c] = coupled() ? 0.0f : static_cast<float>(sums.by_shift[c] * norm.gain[c]);
    }
  }

  template <class Block>
  void backward_convolution(const float* paired_weight, const V* gradient, BlockScratch<Block>& scratch, V* input) const {
    mix_parities<Block>(gradient, scratch.mixed);
    if (groups_ > 1) pair_inputs<Block>(input, scratch.paired);  // those of a single group are still there
    add_weight_gradient<Block>(gradient, scratch.mixed, scratch.paired, scratch.paired_gradient);
    input_gradient<Block>(paired_weight, gradient, scratch.mixed, scratch.paired);
    unpair_input_gradient<Block>(scratch.paired, scale_, input);
  }

  const Network<const float>& network_;
  const int outputs_, count_, groups_;
  int first_group_ = 0;
  const Pass& pass_;
  const float scale_;
  GradientScratch* scratch_;
  Activations* activations_;
  V* logits_;
};

inline void gradient(const Network<const float>& network, int outputs, Loss loss, Normalization normalization,
                     const Statistics<const float>& running, const Statistics<float>* tracked, const Batch& batch, Keys keys,
                     const Network<float>& gradient_to, float* losses, void* workspace) {
  const Pass pass{normalization, &keys};
  const int count = batch.instances.count;
  GradientOfBatch whole(network, outputs, count, pass, normalization == Normalization::batch ? groups_of(count) : 1, workspace);
  whole.prepare();
  whole.clear(gradient_to);
  whole.for_groups([&] {
    whole.forward(batch.instances, batch.draws, running, tracked);
    for (int g = 0; g < whole.groups(); ++g) differentiate_loss(loss, whole.logits(g), outputs, whole.group(g), batch, losses);
    whole.backward(gradient_to);
  });
  whole.finish(gradient_to);
}

inline void forward(const Network<const float>& network, int outputs, const Statistics<const float>& running,
                    const Statistics<float>* tracked, const Instances& instances, const std::int64_t* draws, const Pass& pass,
                    float* logits, void* workspace) {
  GradientOfBatch half(network, outputs, instances.count, pass, groups_of(instances.count), workspace);
  half.prepare();
  half.forward(instances, draws, running, tracked);
  for (int g = 0; g < half.groups(); ++g) {
    const Group group = half.group(g);
    for (int l = 0; l < group.count; ++l) {
      for (int c = 0; c < outputs; ++c) logits[(group.first + l) * outputs + c] = half.logits(g)[c][l];
    }
  }
}

inline void backward(const Network<const float>& network, int outputs, int count, const Pass& pass, const float* by_logits,
                     const Network<float>& gradient_to, void* workspace) {
  GradientOfBatch half(network, outputs, count, pass, groups_of(count), workspace);
  half.put_gradients(by_logits);
  half.clear(gradient_to);
  half.backward(gradient_to);
  half.finish(gradient_to);
}

}  // namespace clops::CLOPS_VARIANT
