// Group norm and layer norm, and the ReLU after them: both normalise blocks of adjacent entries of one instance, and
// differ in which entries share a weight.
#pragma once

#include <math.h>

#include "../sums.hpp"
#include "activation.hpp"
#include "layer.hpp"

namespace clops::CLOPS_VARIANT {

class BlockNorm : public Layer {
 public:
  bool absorbs(const Layer& next) override {
    const auto* activation = dynamic_cast<const Activation*>(&next);
    const bool fits = !relu_ && activation && activation->is_relu();
    relu_ = relu_ || fits;
    return fits;
  }

  bool in_place() const override { return true; }

  void prepare(const LayerPass& pass) override { parameters_ = pass.parameters; }

  void forward(const LayerPass& pass, const Operands& of) override {
    const auto size = static_cast<std::size_t>(pass.groups) * static_cast<std::size_t>(blocks());
    mean_.at_least(size);
    inverse_.at_least(size);
    const V least = all(relu_ ? 0.0f : -__builtin_inff());
    for (int i = 0; i < pass.groups * blocks(); ++i) {
      const V* x = of.inputs[0] + static_cast<std::ptrdiff_t>(i) * block_;
      V* y = of.output + static_cast<std::ptrdiff_t>(i) * block_;
      measure(x, mean_[i], inverse_[i]);
      const V mean = mean_[i], inverse = inverse_[i];
      for_rows(i % blocks(), [&](int first, int count, std::ptrdiff_t parameter) __attribute__((always_inline)) {
        const V gain = inverse * weight(parameter), shift = all(bias_ < 0 ? 0.0f : parameters_[bias_ + parameter]);
        for (int e = first; e < first + count; ++e) y[e] = maximum(least, fma(x[e] - mean, gain, shift));
      });
    }
  }

  void backward(const LayerPass& pass, const Operands& of) override {
    relu_ ? differentiate<true>(pass, of) : differentiate<false>(pass, of);
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

  // The gradient with respect to y, which ReLU stops where its result is 0.
  template <bool relu>
  static CLOPS_INLINE V through(V by_output, const V& output) {
    if constexpr (relu) return output <= 0.0f ? V{} : by_output;
    return by_output;
  }

  template <bool relu>
  void differentiate(const LayerPass& pass, const Operands& of) {
    for (List<V>* sums : {&by_shift_, &by_gain_}) {
      sums->at_least(period_);
      std::memset(static_cast<void*>(sums->data()), 0, static_cast<std::size_t>(period_) * sizeof(V));
    }
    for (int i = 0; i < pass.groups * blocks(); ++i) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(i) * block_;
      const V *x = of.inputs[0] + at, *y = of.output + at, *d = of.by_output + at;
      const V mean = mean_[i], inverse = inverse_[i];
      V by_mean = {}, by_deviation = {};
      for_rows(i % blocks(), [&](int first, int count, std::ptrdiff_t parameter) __attribute__((always_inline)) {
        V shift[4] = {}, gain[4] = {};
        for_fours(count, [&](int e, int q) __attribute__((always_inline)) {
          const V by_sum = through<relu>(d[first + e], y[first + e]);
          shift[q] += by_sum;
          gain[q] = fma(by_sum, x[first + e] - mean, gain[q]);
        });
        const V by_shift = (shift[0] + shift[1]) + (shift[2] + shift[3]);
        const V by_gain = ((gain[0] + gain[1]) + (gain[2] + gain[3])) * inverse;
        by_shift_[parameter] += by_shift;
        by_gain_[parameter] += by_gain;
        by_mean = fma(by_shift, all(weight(parameter)), by_mean);
        by_deviation = fma(by_gain, all(weight(parameter)), by_deviation);
      });
      if (!of.by_inputs[0]) continue;
      V* to = of.by_inputs[0] + at;
      const V common = by_mean / static_cast<float>(block_);
      const V slope = by_deviation / static_cast<float>(block_) * inverse;
      for_rows(i % blocks(), [&](int first, int count, std::ptrdiff_t parameter) __attribute__((always_inline)) {
        const V gain = all(weight(parameter));
        for (int e = first; e < first + count; ++e) {
          to[e] = inverse * (through<relu>(d[e], y[e]) * gain - fma(x[e] - mean, slope, common));
        }
      });
    }
    if (bias_ >= 0) pass.gradient.add(bias_, by_shift_.data(), period_);
    if (weight_ >= 0) pass.gradient.add(weight_, by_gain_.data(), period_);
  }

  // Calls `body(first entry, entries, parameter)` for the rows of a block.
  template <class Body>
  CLOPS_INLINE void for_rows(int block, Body body) const {
    const int before = block * (block_ / row_);
    for (int r = 0; r < block_ / row_; ++r) body(r * row_, row_, (before + r) % period_);
  }

  // Mean and inverse deviation of a block, for each instance. A piece stays in the first-level cache for both of its
  // sums; the sums of pieces are combined as by T. F. Chan, G. H. Golub and R. J. LeVeque, 1979.
  void measure(const V* x, V& mean, V& inverse) const {
    constexpr int piece = 256;
    Doubles of_all = {}, squares = {};
    for (int first = 0; first < block_; first += piece) {
      const int count = block_ - first < piece ? block_ - first : piece;
      const V* at = x + first;
      const V of_piece = sum_of(at, count) / static_cast<float>(count);
      const auto square = [&](int e) __attribute__((always_inline)) { return (at[e] - of_piece) * (at[e] - of_piece); };
      const Doubles difference = __builtin_convertvector(of_piece, Doubles) - of_all;
      const double share = static_cast<double>(count) / (first + count);
      of_all += difference * share;
      squares += difference * difference * (first * share);
      add_to(squares, sum_of(count, square));
    }
    mean = floats(of_all);
    const V variance = floats(squares) / static_cast<float>(block_);
    for (int l = 0; l < kLanes; ++l) inverse[l] = 1.0f / sqrtf(variance[l] + epsilon_);
  }

  int block_ = 1, row_ = 1, period_ = 1;
  std::ptrdiff_t weight_ = -1, bias_ = -1;
  float epsilon_ = 0;
  const float* parameters_ = nullptr;
  bool relu_ = false;
  List<V> mean_, inverse_;      // of each block of a pass
  List<V> by_shift_, by_gain_;  // the gradient of each parameter, for each instance of a group
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
