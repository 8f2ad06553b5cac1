// Loss and gradient of one batch.
//
// Batch statistics couple all instances of a batch, so the groups of kLanes instances go through the network side by
// side: each block's convolutions for all groups, then its statistics, then the rest of the block for all groups.
#pragma once

#include "convolution.hpp"
#include "linear.hpp"
#include "losses.hpp"
#include "normalization.hpp"

namespace clops::CLOPS_VARIANT {

template <class Block>
struct Outputs {
  V z[2 * Block::outputs * Block::pairs];       // becomes the gradient by itself
  V h[Block::outputs * Block::pooled];
  V h_gradient[Block::outputs * Block::pooled];
};

// What has to be kept of one group between two passes over the batch.
struct Activations {
  V frames[kFrame];
  Outputs<Block1> block1;
  Outputs<Block2> block2;
  Outputs<Block3> block3;
};

// What belongs to one block at a time.
template <class Block>
struct BlockScratch {
  V paired[Paired<Block>::rows * Block::pairs];
  V mixed[2 * Block::outputs * Block::pairs];
  float paired_gradient[Block::outputs * Paired<Block>::rows];
};

struct GradientScratch {
  float paired_weight2[Block2::outputs * Paired<Block2>::rows];
  float paired_weight3[Block3::outputs * Paired<Block3>::rows];
  Norm<Block1> norm1;
  Norm<Block2> norm2;
  Norm<Block3> norm3;
  V hidden[kHidden];
  BlockScratch<Block2> block2;
  BlockScratch<Block3> block3;
};

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

inline std::size_t gradient_workspace(int count, int outputs) {
  return aligned(sizeof(GradientScratch)) + static_cast<std::size_t>(groups_of(count)) * aligned(sizeof(Activations)) +
         static_cast<std::size_t>(outputs) * sizeof(V);
}

class GradientOfBatch {
 public:
  GradientOfBatch(const Network<const float>& network, int outputs, Loss loss, Normalization normalization,
                  const Statistics<const float>& running, const Statistics<float>* tracked, const Batch& batch, Keys keys,
                  const Network<float>& gradient, void* workspace)
      : network_(network), outputs_(outputs), loss_(loss), normalization_(normalization), running_(running),
        tracked_(tracked), batch_(batch), keys_(keys), gradient_(gradient), count_(batch.instances.count),
        groups_(groups_of(count_)) {
    char* at = static_cast<char*>(workspace);
    scratch_ = reinterpret_cast<GradientScratch*>(at);
    activations_ = reinterpret_cast<Activations*>(at + aligned(sizeof(GradientScratch)));
    logits_ = reinterpret_cast<V*>(activations_ + groups_);
  }

  void run(float* losses) {
    pair_weights<Block2>(network_.conv_weight[1], scratch_->paired_weight2);
    pair_weights<Block3>(network_.conv_weight[2], scratch_->paired_weight3);
    clear_gradient();
    for (int g = 0; g < groups_; ++g) {
      Activations& a = activations_[g];
      load_frames(batch_.instances, group(g), a.frames);
      convolve_frames(network_.conv_weight[0], network_.conv_bias[0], a.frames, StoreByParity<Block1>{a.block1.z});
    }
    normalize<Block1>(0, &Activations::block1, scratch_->norm1);
    for (int g = 0; g < groups_; ++g) {
      Activations& a = activations_[g];
      pool(a.block1.z, scratch_->norm1, masks(g), a.block1.h);
      forward<Block2>(1, scratch_->paired_weight2, a.block1.h, scratch_->block2, a.block2.z);
    }
    normalize<Block2>(1, &Activations::block2, scratch_->norm2);
    for (int g = 0; g < groups_; ++g) {
      Activations& a = activations_[g];
      pool(a.block2.z, scratch_->norm2, masks(g), a.block2.h);
      forward<Block3>(2, scratch_->paired_weight3, a.block2.h, scratch_->block3, a.block3.z);
    }
    normalize<Block3>(2, &Activations::block3, scratch_->norm3);
    for (int g = 0; g < groups_; ++g) {
      Activations& a = activations_[g];
      pool(a.block3.z, scratch_->norm3, masks(g), a.block3.h);
      linear1<1>(network_.linear1_weight, network_.linear1_bias, a.block3.h, scratch_->hidden);
      linear2(network_.linear2_weight, network_.linear2_bias, outputs_, scratch_->hidden, logits_);
      differentiate_loss(loss_, logits_, outputs_, group(g), batch_, losses);
      differentiate_linear(network_, outputs_, logits_, scratch_->hidden, a.block3.h, gradient_, a.block3.h_gradient);
    }
    backward<Block3>(2, &Activations::block3, scratch_->norm3, [&](Activations& a) {
      backward_convolution<Block3>(scratch_->paired_weight3, a.block2.h, a.block3.z, scratch_->block3, a.block2.h_gradient);
    });
    unpair_weight_gradient<Block3>(scratch_->block3.paired_gradient, gradient_.conv_weight[2]);
    backward<Block2>(1, &Activations::block2, scratch_->norm2, [&](Activations& a) {
      backward_convolution<Block2>(scratch_->paired_weight2, a.block1.h, a.block2.z, scratch_->block2, a.block1.h_gradient);
    });
    unpair_weight_gradient<Block2>(scratch_->block2.paired_gradient, gradient_.conv_weight[1]);
    backward<Block1>(0, &Activations::block1, scratch_->norm1, [&](Activations& a) {
      add_frame_weight_gradient(a.block1.z, a.frames, gradient_.conv_weight[0]);
    });
  }

 private:
  Group group(int g) const { return group_of(count_, g); }

  Masks masks(int g) const {
    std::int64_t draws[kLanes];
    for (int l = 0; l < kLanes; ++l) draws[l] = batch_.draws[group(g).at(l)];
    return Masks(keys_, draws);
  }

  // Everything that groups add to.
  void clear_gradient() {
    const auto clear = [](float* values, int n) { std::memset(values, 0, sizeof(float) * static_cast<std::size_t>(n)); };
    clear(gradient_.conv_weight[0], Block1::outputs * kKernel);
    clear(scratch_->block2.paired_gradient, Block2::outputs * Paired<Block2>::rows);
    clear(scratch_->block3.paired_gradient, Block3::outputs * Paired<Block3>::rows);
    clear(gradient_.linear1_weight, kHidden * kFeatures);
    clear(gradient_.linear1_bias, kHidden);
    clear(gradient_.linear2_weight, outputs_ * kHidden);
    clear(gradient_.linear2_bias, outputs_);
  }

  template <class Block>
  void normalize(int b, Outputs<Block> Activations::*block, Norm<Block>& norm) {
    const float *weight = network_.norm_weight[b], *bias = network_.norm_bias[b];
    if (normalization_ == Normalization::running) {
      running_norm(running_.mean[b], running_.variance[b], weight, bias, norm);
      return;
    }
    const auto z_of = [&](int g) { return (activations_[g].*block).z; };
    batch_norm(z_of, count_, weight, bias, norm, tracked_ ? tracked_->mean[b] : nullptr,
               tracked_ ? tracked_->variance[b] : nullptr);
  }

  template <class Block>
  void forward(int b, const float* paired_weight, const V* input, BlockScratch<Block>& scratch, V* z) {
    pair_inputs<Block>(input, scratch.paired);
    convolve<Block>(paired_weight, network_.conv_bias[b], scratch.paired, StoreByParity<Block>{z});
  }

  // The gradient by a block's norm and its convolution's bias, and for each group the gradient by z, in place of it;
  // then what `rest` makes of it.
  template <class Block, class Rest>
  void backward(int b, Outputs<Block> Activations::*block, const Norm<Block>& norm, Rest rest) {
    double by_shift[Block::outputs] = {}, by_gain[Block::outputs] = {};
    for (int g = 0; g < groups_; ++g) {
      const Outputs<Block>& outputs = activations_[g].*block;
      add_norm_gradient(outputs.z, outputs.h, outputs.h_gradient, norm, by_shift, by_gain);
    }
    const bool coupled = normalization_ == Normalization::batch;
    const double n = static_cast<double>(count_) * Block::length;
    float mean_gradient[Block::outputs], variance_gradient[Block::outputs];
    for (int c = 0; c < Block::outputs; ++c) {
      gradient_.norm_bias[b][c] = static_cast<float>(by_shift[c]);
      gradient_.norm_weight[b][c] = static_cast<float>(by_gain[c] * norm.inverse[c]);
      gradient_.conv_bias[b][c] = coupled ? 0.0f : static_cast<float>(by_shift[c] * norm.gain[c]);
      mean_gradient[c] = coupled ? static_cast<float>(by_shift[c] / n) : 0.0f;
      variance_gradient[c] = coupled ? static_cast<float>(by_gain[c] * norm.inverse[c] * norm.inverse[c] / n) : 0.0f;
    }
    for (int g = 0; g < groups_; ++g) {
      Outputs<Block>& outputs = activations_[g].*block;
      differentiate_norm(outputs.z, outputs.h, outputs.h_gradient, norm, mean_gradient, variance_gradient, group(g).present());
      rest(activations_[g]);
    }
  }

  template <class Block>
  static void backward_convolution(const float* paired_weight, const V* input, const V* gradient, BlockScratch<Block>& scratch,
                                   V* input_gradient_to) {
    mix_parities<Block>(gradient, scratch.mixed);
    pair_inputs<Block>(input, scratch.paired);
    add_weight_gradient<Block>(gradient, scratch.mixed, scratch.paired, scratch.paired_gradient);
    input_gradient<Block>(paired_weight, gradient, scratch.mixed, scratch.paired);
    unpair_input_gradient<Block>(scratch.paired, input_gradient_to);
  }

  const Network<const float>& network_;
  const int outputs_;
  const Loss loss_;
  const Normalization normalization_;
  const Statistics<const float>& running_;
  const Statistics<float>* tracked_;
  const Batch& batch_;
  const Keys keys_;
  const Network<float>& gradient_;
  const int count_, groups_;
  GradientScratch* scratch_;
  Activations* activations_;
  V* logits_;
};

inline void gradient(const Network<const float>& network, int outputs, Loss loss, Normalization normalization,
                     const Statistics<const float>& running, const Statistics<float>* tracked, const Batch& batch, Keys keys,
                     const Network<float>& gradient_to, float* losses, void* workspace) {
  GradientOfBatch(network, outputs, loss, normalization, running, tracked, batch, keys, gradient_to, workspace).run(losses);
}

}  // namespace clops::CLOPS_VARIANT
