// Batch norm, over the instances of a batch and the positions of a channel, and the ReLU after it.
#pragma once

#include <math.h>  // not <cmath>: all variants would share its inline functions

#include "../sums.hpp"
#include "activation.hpp"
#include "layer.hpp"

namespace clops::CLOPS_VARIANT {

class BatchNorm final : public Layer {
 public:
  BatchNorm(const Fields& fields, const Shapes& inputs) {
    shape = only(fields, inputs);
    weight_ = fields.parameters("weight", shape.channels);
    bias_ = fields.parameters("bias", shape.channels);
    running_mean_ = fields.buffer("mean", shape.channels);
    running_variance_ = fields.buffer("variance", shape.channels);
    epsilon_ = static_cast<float>(fields.number("eps"));
    momentum_ = static_cast<float>(fields.number("momentum"));
    learns = weight_ >= 0 || bias_ >= 0;
    for (List<float>* row : {&mean_, &inverse_, &gain_, &shift_}) row->at_least(shape.channels);
  }

  bool absorbs(const Layer& next) override {
    const auto* activation = dynamic_cast<const Activation*>(&next);
    const bool fits = !relu_ && activation && activation->is_relu();
    relu_ = relu_ || fits;
    return fits;
  }

  bool in_place() const override { return true; }

  void prepare(const LayerPass& pass) override {
    for (int c = 0; c < shape.channels; ++c) {
      shift_[c] = bias_ < 0 ? 0.0f : pass.parameters[bias_ + c];
      gain_[c] = weight_ < 0 ? 1.0f : pass.parameters[weight_ + c];
      if (!pass.batch_statistics) normalise(c, running_mean_[c], running_variance_[c]);
    }
  }

  // Of a folded pass: returns the gain of each channel, and makes the start of the layer before that of both.
  const float* fold(float* start) const {
    for (int c = 0; c < shape.channels; ++c) start[c] = (start[c] - running_mean_[c]) * gain_[c] + shift_[c];
    return gain_.data();
  }
  float floor() const { return relu_ ? 0.0f : -__builtin_inff(); }

  void forward(const LayerPass& pass, const Operands& of) override {
    const V least = all(floor());
    for (int c = 0; c < shape.channels; ++c) {
      if (pass.batch_statistics) measure(pass, of.inputs[0], c);
      const float mean = mean_[c];
      const V gain = all(gain_[c]), shift = all(shift_[c]);
      for (int g = 0; g < pass.groups; ++g) {
        const V* x = of.inputs[0] + row_of(g, c);
        V* y = of.output + row_of(g, c);
        for (int i = 0; i < shape.plane(); ++i) y[i] = maximum(least, fma(x[i] - mean, gain, shift));
      }
    }
  }

  void backward(const LayerPass& pass, const Operands& of) override {
    relu_ ? differentiate<true>(pass, of) : differentiate<false>(pass, of);
  }

 private:
  std::ptrdiff_t row_of(int group, int channel) const {
    return shape.size_of_groups(group) + channel * shape.plane();
  }

  void normalise(int channel, float mean, float variance) {
    mean_[channel] = mean;
    inverse_[channel] = 1.0f / sqrtf(variance + epsilon_);
    gain_[channel] *= inverse_[channel];
  }

  // The gradient with respect to y, which ReLU stops where its result is 0.
  template <bool relu>
  static CLOPS_INLINE V through(V by_output, const V& output) {
    if constexpr (relu) return output <= 0.0f ? V{} : by_output;
    return by_output;
  }

  template <bool relu>
  void differentiate(const LayerPass& pass, const Operands& of) const {
    for (int c = 0; c < shape.channels; ++c) {
      double by_shift = 0, by_gain = 0;
      for (int g = 0; g < pass.groups; ++g) add_by_parameters<relu>(pass.gradient, of, g, c, by_shift, by_gain);
      if (!pass.gradient.each) {
        if (bias_ >= 0) pass.gradient.sums[bias_ + c] += static_cast<float>(by_shift);
        if (weight_ >= 0) pass.gradient.sums[weight_ + c] += static_cast<float>(by_gain);
      }
      if (!of.by_inputs[0]) continue;
      // On batch statistics every entry has an effect.
      const double n = static_cast<double>(pass.count) * shape.plane();
      const V by_mean = all(pass.batch_statistics ? static_cast<float>(by_shift / n) : 0.0f);
      const V by_deviation = all(pass.batch_statistics ? static_cast<float>(by_gain * inverse_[c] / n) : 0.0f);
      for (int g = 0; g < pass.groups; ++g) {
        const std::ptrdiff_t row = row_of(g, c);
        const V *x = of.inputs[0] + row, *y = of.output + row, *d = of.by_output + row;
        V* to = of.by_inputs[0] + row;
        const V gain = gain_[c] * pass.present(g);
        const float mean = mean_[c];
        for (int i = 0; i < shape.plane(); ++i) to[i] = gain * (through<relu>(d[i], y[i]) - fma(x[i] - mean, by_deviation, by_mean));
      }
    }
  }

  // Adds the gradients with respect to shift and weight of one group and channel.
  template <bool relu>
  void add_by_parameters(const Gradient& gradient, const Operands& of, int group, int c, double& by_shift, double& by_gain) const {
    const std::ptrdiff_t row = row_of(group, c);
    const V *x = of.inputs[0] + row, *y = of.output + row, *d = of.by_output + row;
    const float mean = mean_[c];
    V shift[4] = {}, gain[4] = {};
    for_fours(shape.plane(), [&](int i, int q) __attribute__((always_inline)) {
      const V by_sum = through<relu>(d[i], y[i]);
      shift[q] += by_sum;
      gain[q] = fma(by_sum, x[i] - mean, gain[q]);
    });
    const V all_shift = (shift[0] + shift[1]) + (shift[2] + shift[3]);
    const V all_gain = ((gain[0] + gain[1]) + (gain[2] + gain[3])) * inverse_[c];
    by_shift += sum(all_shift);
    by_gain += sum(all_gain);
    if (gradient.each && bias_ >= 0) gradient.each[bias_ + c] += all_shift;
    if (gradient.each && weight_ >= 0) gradient.each[weight_ + c] += all_gain;
  }

  // The statistics of a batch's channel.
  void measure(const LayerPass& pass, const V* x, int channel) {
    const double n = static_cast<double>(pass.count) * shape.plane();
    if (n < 2) refuse("batch norm in training needs more than one value per channel; the batch has one instance of one position");
    double total = 0, squares = 0;
    for (int g = 0; g < pass.groups; ++g) total += sum(sum_of(x + row_of(g, channel), shape.plane()) * pass.present(g));
    const float mean = static_cast<float>(total / n);
    for (int g = 0; g < pass.groups; ++g) {
      const V* row = x + row_of(g, channel);
      const auto square = [row, mean](int i) __attribute__((always_inline)) { return (row[i] - mean) * (row[i] - mean); };
      squares += sum(sum_of(shape.plane(), square) * pass.present(g));
    }
    normalise(channel, mean, static_cast<float>(squares / n));
    if (!pass.track) return;
    running_mean_[channel] += momentum_ * (mean - running_mean_[channel]);
    running_variance_[channel] += momentum_ * (static_cast<float>(squares / (n - 1)) - running_variance_[channel]);
  }

  std::ptrdiff_t weight_ = -1, bias_ = -1;
  float *running_mean_ = nullptr, *running_variance_ = nullptr;
  float epsilon_ = 0, momentum_ = 0;
  bool relu_ = false;
  // y = (x - mean) gain + shift, where gain = weight inverse
  List<float> mean_, inverse_, gain_, shift_;
};

}  // namespace clops::CLOPS_VARIANT
