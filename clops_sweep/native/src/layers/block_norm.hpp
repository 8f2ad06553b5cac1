// Group norm and layer norm: both normalise blocks of adjacent entries of one instance, and differ in which entries
// share a weight.
#pragma once

#include <math.h>

#include "../sums.hpp"
#include "layer.hpp"

namespace clops::CLOPS_VARIANT {

class BlockNorm : public Layer {
 public:
  void prepare(const LayerPass& pass) override { parameters_ = pass.parameters; }

  void forward(const LayerPass& pass, const Operands& of) override {
    at_least(pass);
    for (int i = 0; i < pass.groups * blocks(); ++i) {
      const V* x = of.inputs[0] + static_cast<std::ptrdiff_t>(i) * block_;
      V* y = of.output + static_cast<std::ptrdiff_t>(i) * block_;
      const V mean = total(x, V{}, false) / static_cast<float>(block_);
      const V variance = total(x, mean, true) / static_cast<float>(block_);
      V inverse = variance + epsilon_;
      for (int l = 0; l < kLanes; ++l) inverse[l] = 1.0f / sqrtf(inverse[l]);
      mean_[i] = mean;
      inverse_[i] = inverse;
      for_rows(i % blocks(), [&](int first, int count, std::ptrdiff_t parameter) {
        const V gain = inverse * weight(parameter), shift = all(bias_ < 0 ? 0.0f : parameters_[bias_ + parameter]);
        for (int e = first; e < first + count; ++e) y[e] = fma(x[e] - mean, gain, shift);
      });
    }
  }

  void backward(const LayerPass& pass, const Operands& of) override {
    for (int i = 0; i < pass.groups * blocks(); ++i) {
      const V *x = of.inputs[0] + static_cast<std::ptrdiff_t>(i) * block_, *d = of.by_output + static_cast<std::ptrdiff_t>(i) * block_;
      const V mean = mean_[i], inverse = inverse_[i];
      Doubles by_mean = {}, by_deviation = {};
      for_rows(i % blocks(), [&](int first, int count, std::ptrdiff_t parameter) {
        const V by_shift = sum_of(d + first, count);
        const auto term = [&](int e) __attribute__((always_inline)) { return d[first + e] * (x[first + e] - mean); };
        const V by_gain = inverse * sum_of(count, term);
        if (bias_ >= 0) pass.gradient.add(bias_ + parameter, by_shift);
        if (weight_ >= 0) pass.gradient.add(weight_ + parameter, by_gain);
        add_to(by_mean, by_shift * weight(parameter));
        add_to(by_deviation, by_gain * weight(parameter));
      });
      if (!of.by_inputs[0]) continue;
      V* to = of.by_inputs[0] + static_cast<std::ptrdiff_t>(i) * block_;
      const V common = floats(by_mean) / static_cast<float>(block_);
      const V slope = floats(by_deviation) / static_cast<float>(block_) * inverse;
      for_rows(i % blocks(), [&](int first, int count, std::ptrdiff_t parameter) {
        const V gain = all(weight(parameter));
        for (int e = first; e < first + count; ++e) to[e] = inverse * (d[e] * gain - fma(x[e] - mean, slope, common));
      });
    }
  }

 protected:
  // Blocks of `block` entries; rows of `row` adjacent entries share a weight, of which there are `parameters` in a cycle.
  void set(const Fields& fields, const Shape& of, int block, int row, int parameters) {
    shape = of;
    block_ = block;
    row_ = row;
    period_ = parameters;
    epsilon_ = static_cast<float>(fields.number("eps"));
    weight_ = fields.parameters("weight", parameters);
    bias_ = fields.parameters("bias", parameters);
    learns = weight_ >= 0 || bias_ >= 0;
  }

 private:
  int blocks() const { return shape.size() / block_; }
  float weight(std::ptrdiff_t parameter) const { return weight_ < 0 ? 1.0f : parameters_[weight_ + parameter]; }

  void at_least(const LayerPass& pass) {
    const auto size = static_cast<std::size_t>(pass.groups) * static_cast<std::size_t>(blocks());
    mean_.at_least(size);
    inverse_.at_least(size);
  }

  // Calls `body(first entry, entries, parameter)` for the rows of a block.
  template <class Body>
  CLOPS_INLINE void for_rows(int block, Body body) const {
    const int before = block * (block_ / row_);
    for (int r = 0; r < block_ / row_; ++r) body(r * row_, row_, (before + r) % period_);
  }

  // The sum over a block of x, or of (x - mean)^2, for each instance.
  V total(const V* x, V mean, bool squares) const {
    constexpr int piece = 256;
    Doubles result = {};
    for (int first = 0; first < block_; first += piece) {
      const int count = block_ - first < piece ? block_ - first : piece;
      const V* at = x + first;
      const auto square = [&](int e) __attribute__((always_inline)) { return (at[e] - mean) * (at[e] - mean); };
      add_to(result, squares ? sum_of(count, square) : sum_of(at, count));
    }
    return floats(result);
  }

  int block_ = 1, row_ = 1, period_ = 1;
  std::ptrdiff_t weight_ = -1, bias_ = -1;
  float epsilon_ = 0;
  const float* parameters_ = nullptr;
  List<V> mean_, inverse_;  // of each block of a pass
};

class GroupNorm final : public BlockNorm {
 public:
  GroupNorm(const Fields& fields, const Shapes& inputs) {
    const Shape& input = only(fields, inputs);
    const int groups = fields.integer("groups", 1);
    if (input.channels % groups) refuse("group_norm: %d channels do not divide into %d groups", input.channels, groups);
    set(fields, input, input.size() / groups, input.plane(), input.channels);
  }
};

class LayerNorm final : public BlockNorm {
 public:
  LayerNorm(const Fields& fields, const Shapes& inputs) {
    const Shape& input = only(fields, inputs);
    const int axes = fields.integer("axes", 1);
    if (axes > 3) refuse("layer_norm: axes must be 1, 2 or 3");
    const int block = axes == 1 ? input.width : axes == 2 ? input.plane() : input.size();
    set(fields, input, block, 1, block);
  }
};

}  // namespace clops::CLOPS_VARIANT
