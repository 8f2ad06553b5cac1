// A matrix product on the features of an instance.
#pragma once

#include "../products.hpp"
#include "../sums.hpp"

namespace clops::CLOPS_VARIANT {

class Linear final : public Layer {
 public:
  Linear(const Fields& fields, const Shapes& inputs) {
    input_ = only(fields, inputs);
    if (input_.plane() != 1) {
      refuse("linear: the input must be features (F, 1, 1), not (%d, %d, %d)", input_.channels, input_.height, input_.width);
    }
    features_ = input_.channels;
    shape = {fields.integer("outputs", 1), 1, 1};
    weight_ = fields.parameters("weight", static_cast<std::ptrdiff_t>(shape.channels) * features_);
    bias_ = fields.parameters("bias", shape.channels);
    if (weight_ < 0) refuse("linear: weight is missing");
    learns = true;
    plan(forward_, features_, 1);
    plan(backward_, shape.channels, features_);
    packed_.at_least(static_cast<std::size_t>(shape.channels) * features_);
    transposed_.at_least(packed_.size());
  }

  void prepare(const LayerPass& pass) override {
    pack(forward_, shape.channels, pass.parameters + weight_, features_, nullptr, packed_.data());
  }

  void forward(const LayerPass& pass, const Operands& of) override {
    const float* bias = bias_ < 0 ? nullptr : pass.parameters + bias_;
    for (int g = 0; g < pass.groups; ++g) {
      const V* x = input_.of_group(of.inputs[0], g);
      multiply(forward_, shape.channels, packed_.data(), bias, kNoFloor, x, shape.of_group(of.output, g), 1);
    }
  }

  void backward(const LayerPass& pass, const Operands& of) override {
    if (of.by_inputs[0]) pack(backward_, features_, pass.parameters + weight_, 1, nullptr, transposed_.data());
    for (int g = 0; g < pass.groups; ++g) {
      const V *x = input_.of_group(of.inputs[0], g), *d = shape.of_group(of.by_output, g);
      correlate(forward_, shape.channels, d, 1, x, pass.gradient, weight_);
      if (bias_ >= 0) {
        for (int c = 0; c < shape.channels; ++c) pass.gradient.add(bias_ + c, d[c]);
      }
      if (!of.by_inputs[0]) continue;
      multiply(backward_, features_, transposed_.data(), nullptr, kNoFloor, d, input_.of_group(of.by_inputs[0], g), 1);
    }
  }

 private:
  // One position; term k has the weight k * distance.
  static void plan(Gather& gather, int terms, int distance) {
    gather.from.append(0);
    gather.to.append(0);
    for (int k = 0; k < terms; ++k) {
      gather.offset.append(k);
      gather.weight.append(k * distance);
    }
    gather.pad();
  }

  Shape input_{};
  int features_ = 0;
  std::ptrdiff_t weight_ = 0, bias_ = -1;
  Gather forward_, backward_;
  List<float> packed_, transposed_;
};

}  // namespace clops::CLOPS_VARIANT
