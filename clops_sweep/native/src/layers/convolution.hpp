// Convolution along height and width, with stride, zero padding, dilation and groups.
//
// Forward, the terms of an output are its inputs' channels and taps. The gradient with respect to the inputs is a
// convolution too, in parts: with a stride, only every stride-th tap reaches a position, and near the first and last row,
// only some of the taps. Both read a copy that has the zeros of the padding around it.
#pragma once

#include "../products.hpp"
#include "batch_norm.hpp"

namespace clops::CLOPS_VARIANT {

// A value with zeros around it.
struct Padded {
  Shape shape{};
  int top = 0, bottom = 0, left = 0, right = 0;

  bool needed() const { return top || bottom || left || right; }
  int row() const { return needed() ? (shape.width + left + right) | 1 : shape.width; }  // odd: rows share no cache set
  int plane() const { return needed() ? ((shape.height + top + bottom) * row()) | 1 : shape.plane(); }
  std::size_t size() const { return needed() ? static_cast<std::size_t>(shape.channels) * plane() : 0; }

  // Returns the value itself if there is nothing to pad.
  const V* copy(const V* from, V* to) const {
    if (!needed()) return from;
    const int vectors = plane();
    for (int c = 0; c < shape.channels; ++c, to += vectors) {
      V* at = to;
      const auto zeros = [&at](int count) {
        std::memset(static_cast<void*>(at), 0, static_cast<std::size_t>(count) * sizeof(V));
        at += count;
      };
      zeros(top * row() + left);
      for (int y = 0; y < shape.height; ++y, from += shape.width) {
        std::memcpy(static_cast<void*>(at), from, static_cast<std::size_t>(shape.width) * sizeof(V));
        at += shape.width;
        const bool is_last = y + 1 == shape.height;
        zeros(is_last ? static_cast<int>(to + vectors - at) : row() - shape.width);
      }
    }
    return to - static_cast<std::ptrdiff_t>(shape.channels) * vectors;
  }
};

class Convolution final : public Layer {
 public:
  Convolution(const Fields& fields, const Shapes& inputs) : input_(only(fields, inputs)) {
    kernel_ = fields.pair("kernel", 1);
    stride_ = fields.pair("stride", 1);
    dilation_ = fields.pair("dilation", 1);
    groups_ = fields.integer("groups", 1);
    shape.channels = fields.integer("outputs", 1);
    if (input_.channels % groups_ || shape.channels % groups_) {
      refuse("convolution: %d and %d channels do not divide into %d groups", input_.channels, shape.channels, groups_);
    }
    const auto padding = [&fields](int side) { return fields.entry("padding", 4, side); };
    padded_input_ = {input_, padding(0), padding(1), padding(2), padding(3)};
    shape.height = length(input_.height + padded_input_.top + padded_input_.bottom, kernel_.height, stride_.height, dilation_.height);
    shape.width = length(input_.width + padded_input_.left + padded_input_.right, kernel_.width, stride_.width, dilation_.width);
    inputs_ = input_.channels / groups_;
    outputs_ = shape.channels / groups_;
    taps_ = kernel_.height * kernel_.width;
    weight_ = fields.parameters("weight", weights());
    bias_ = fields.parameters("bias", shape.channels);
    if (weight_ < 0) refuse("convolution: weight is missing");
    learns = true;
    plan_outputs();
    plan_inputs();
    packed_.at_least(weights());
    start_.at_least(shape.channels);
    if (bias_ >= 0) by_bias_.at_least(shape.channels);
  }

  std::size_t scratch() const override {
    const std::size_t a = padded_input_.size(), b = padded_output_.size();
    return a > b ? a : b;
  }

  // With running statistics, batch norm is an affine map of each channel, which the weights can hold.
  bool folds(const Layer& next) override {
    norm_ = dynamic_cast<const BatchNorm*>(&next);
    return norm_ != nullptr;
  }

  void prepare(const LayerPass& pass) override {
    const float* bias = bias_ < 0 ? nullptr : pass.parameters + bias_;
    for (int c = 0; c < shape.channels; ++c) start_[c] = bias ? bias[c] : 0.0f;
    const bool folded = pass.folded && norm_;
    const float* gain = folded ? norm_->fold(start_.data()) : nullptr;
    floor_ = folded ? norm_->floor() : kNoFloor;
    for (int group = 0; group < groups_; ++group) {
      const float* weight = pass.parameters + weight_ + weights_before(group);
      const float* gain_of_group = gain ? gain + group * outputs_ : nullptr;
      pack(forward_, outputs_, weight, inputs_ * taps_, gain_of_group, packed_.data() + weights_before(group));
    }
  }

  void forward(const LayerPass& pass, const Operands& of) override {
    for (int g = 0; g < pass.groups; ++g) {
      const V* x = padded_input_.copy(input_.of_group(of.inputs[0], g), pass.scratch);
      V* y = shape.of_group(of.output, g);
      for (int group = 0; group < groups_; ++group) {
        multiply(forward_, outputs_, packed_.data() + weights_before(group), start_.data() + group * outputs_, floor_,
                 x + group * inputs_ * padded_input_.plane(), y + group * outputs_ * shape.plane(), shape.plane());
      }
    }
  }

  void backward(const LayerPass& pass, const Operands& of) override {
    if (of.by_inputs[0]) pack_transposed(pass.parameters + weight_);
    for (int g = 0; g < pass.groups; ++g) {
      const V* d = shape.of_group(of.by_output, g);
      differentiate_weights(pass, input_.of_group(of.inputs[0], g), d);
      if (of.by_inputs[0]) differentiate_input(pass, d, input_.of_group(of.by_inputs[0], g));
    }
  }

 private:
  int weights() const { return shape.channels * inputs_ * taps_; }
  std::ptrdiff_t weights_before(int group) const { return static_cast<std::ptrdiff_t>(group) * outputs_ * inputs_ * taps_; }

  static int length(int input, int kernel, int stride, int dilation) {
    const int reach = dilation * (kernel - 1) + 1;
    if (input < reach) refuse("convolution: a kernel that reaches over %d positions does not fit into %d", reach, input);
    return (input - reach) / stride + 1;
  }

  void plan_outputs() {
    const int row = padded_input_.row(), plane = padded_input_.plane();
    for (int y = 0; y < shape.height; ++y) {
      for (int x = 0; x < shape.width; ++x) {
        forward_.from.append(y * stride_.height * row + x * stride_.width);
        forward_.to.append(y * shape.width + x);
      }
    }
    for (int c = 0; c < inputs_; ++c) {
      for (int i = 0; i < kernel_.height; ++i) {
        for (int j = 0; j < kernel_.width; ++j) {
          forward_.offset.append(c * plane + i * dilation_.height * row + j * dilation_.width);
          forward_.weight.append((c * kernel_.height + i) * kernel_.width + j);
        }
      }
    }
    forward_.pad();
  }

  // Zeros before and after the outputs along the width, so that every tap of every input finds an output or a zero.
  void pad_outputs() {
    const int left = padded_input_.left, stride = stride_.width;
    const int before = (kernel_.width - 1) * dilation_.width - left, last = (input_.width - 1 + left) / stride;
    padded_output_.shape = shape;
    padded_output_.left = before > 0 ? (before + stride - 1) / stride : 0;
    padded_output_.right = last > shape.width - 1 ? last - (shape.width - 1) : 0;
  }

  // The taps along the height that lead from a row of inputs to rows of outputs: from `first` on, every `step`-th.
  struct RowTaps {
    int first = 0, count = 0, step = 1, output = 0;  // the row of outputs that the first of them leads to
  };
  RowTaps taps_of(int y) const {
    RowTaps taps;
    for (int i = 0; i < kernel_.height; ++i) {
      const int reach = y + padded_input_.top - i * dilation_.height;
      if (reach < 0 || reach % stride_.height || reach / stride_.height >= shape.height) continue;
      if (taps.count == 0) {
        taps.first = i;
        taps.output = reach / stride_.height;
      } else if (taps.count == 1) {
        taps.step = i - taps.first;
      }
      ++taps.count;
    }
    return taps;
  }

  // Rows of inputs with the same taps are computed together.
  void plan_inputs() {
    pad_outputs();
    List<RowTaps> classes;
    for (int y = 0; y < input_.height; ++y) {
      const RowTaps taps = taps_of(y);
      std::size_t number = 0;
      while (number < classes.size() && !(classes[number].first == taps.first && classes[number].count == taps.count)) ++number;
      if (number == classes.size()) {
        classes.append(taps);
        add_terms(taps);
      }
      for (int x = 0; x < input_.width; ++x) {
        const int padded_x = x + padded_input_.left;
        Gather& gather = *backward_[number * stride_.width + padded_x % stride_.width];
        gather.from.append(taps.output * padded_output_.row() + padded_x / stride_.width + padded_output_.left);
        gather.to.append(y * input_.width + x);
      }
    }
    for (Gather* gather : backward_) gather->pad();
  }

  // The terms of a class of rows, for each residue of the position along the width.
  void add_terms(const RowTaps& taps) {
    const std::size_t first = backward_.size();
    for (int residue = 0; residue < stride_.width; ++residue) backward_.append(new Gather);
    for (int o = 0; o < outputs_; ++o) {
      for (int n = 0; n < taps.count; ++n) {
        const int i = taps.first + n * taps.step, row = n * taps.step * dilation_.height / stride_.height;
        for (int j = 0; j < kernel_.width; ++j) {
          const int reach = j * dilation_.width;
          Gather& gather = *backward_[first + reach % stride_.width];
          gather.offset.append(o * padded_output_.plane() - row * padded_output_.row() - reach / stride_.width);
          gather.weight.append((o * inputs_ * kernel_.height + i) * kernel_.width + j);
        }
      }
    }
  }

  void pack_transposed(const float* weight) {
    std::size_t terms = 0;
    for (const Gather* gather : backward_) terms += static_cast<std::size_t>(gather->terms());
    transposed_.at_least(terms * static_cast<std::size_t>(input_.channels));
    float* to = transposed_.data();
    for (int group = 0; group < groups_; ++group) {
      for (const Gather* gather : backward_) {
        pack(*gather, inputs_, weight + weights_before(group), taps_, nullptr, to);
        to += inputs_ * gather->terms();
      }
    }
  }

  void differentiate_weights(const LayerPass& pass, const V* input, const V* d) {
    const V* x = padded_input_.copy(input, pass.scratch);
    for (int group = 0; group < groups_; ++group) {
      const V *by_outputs = d + group * outputs_ * shape.plane(), *inputs = x + group * inputs_ * padded_input_.plane();
      correlate(forward_, outputs_, by_outputs, shape.plane(), inputs, pass.gradient, weight_ + weights_before(group));
    }
    if (bias_ < 0) return;
    for (int c = 0; c < shape.channels; ++c) by_bias_[c] = sum_of(d + c * shape.plane(), shape.plane());
    pass.gradient.add(bias_, by_bias_.data(), shape.channels);
  }

  void differentiate_input(const LayerPass& pass, const V* by_output, V* to) {
    const V* d = padded_output_.copy(by_output, pass.scratch);
    const float* weight = transposed_.data();
    for (int group = 0; group < groups_; ++group) {
      for (const Gather* gather : backward_) {
        const V* from = d + group * outputs_ * padded_output_.plane();
        multiply(*gather, inputs_, weight, nullptr, kNoFloor, from, to + group * inputs_ * input_.plane(), input_.plane());
        weight += inputs_ * gather->terms();
      }
    }
  }

  Shape input_;
  Pair kernel_{}, stride_{}, dilation_{};
  int groups_ = 1, inputs_ = 0, outputs_ = 0, taps_ = 0;  // channels of a group; taps of one kernel
  std::ptrdiff_t weight_ = 0, bias_ = -1;
  Padded padded_input_, padded_output_;
  Gather forward_;
  List<Gather*> backward_;  // [classes of rows][residues of the position along the width]
  List<float> packed_, start_, transposed_;
  List<V> by_bias_;  // the gradient of each bias, for each instance of a group
  float floor_ = kNoFloor;
  const BatchNorm* norm_ = nullptr;

 public:
  ~Convolution() override {
    for (Gather* gather : backward_) delete gather;
  }
};

}  // namespace clops::CLOPS_VARIANT
