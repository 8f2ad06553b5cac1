// Sums and products of two values.
#pragma once

#include "../sums.hpp"
#include "layer.hpp"

namespace clops::CLOPS_VARIANT {

class Add final : public Layer {
 public:
  Add(const Fields&, const Shapes& inputs) {
    if (inputs.size() != 2 || !(inputs[0] == inputs[1])) refuse("add needs two inputs of equal shape");
    shape = inputs[0];
  }

  void forward(const LayerPass& pass, const Operands& of) override {
    const V *a = of.inputs[0], *b = of.inputs[1];
    for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(pass.groups) * shape.size(); ++i) of.output[i] = a[i] + b[i];
  }

  void backward(const LayerPass& pass, const Operands& of) override {
    const std::size_t bytes = static_cast<std::size_t>(shape.size_of_groups(pass.groups)) * sizeof(V);
    for (int input = 0; input < 2; ++input) {
      if (of.by_inputs[input]) std::memcpy(static_cast<void*>(of.by_inputs[input]), of.by_output, bytes);
    }
  }
};

// One of the inputs may have a single entry per channel.
class Multiply final : public Layer {
 public:
  Multiply(const Fields&, const Shapes& inputs) {
    if (inputs.size() != 2) refuse("multiply has two inputs");
    const int whole = inputs[0].plane() >= inputs[1].plane() ? 0 : 1;
    shape = inputs[whole];
    for (std::size_t i = 0; i < 2; ++i) {
      step_[i] = inputs[i] == shape ? 1 : 0;
      if (inputs[i].channels != shape.channels || (step_[i] == 0 && inputs[i].plane() != 1)) {
        refuse("multiply needs two inputs of equal shape, or one of shape (%d, 1, 1)", shape.channels);
      }
    }
  }

  void forward(const LayerPass& pass, const Operands& of) override {
    for (int row = 0; row < pass.groups * shape.channels; ++row) {
      const V *a = row_of(of.inputs[0], 0, row), *b = row_of(of.inputs[1], 1, row);
      V* y = of.output + static_cast<std::ptrdiff_t>(row) * shape.plane();
      for (int i = 0; i < shape.plane(); ++i) y[i] = a[i * step_[0]] * b[i * step_[1]];
    }
  }

  void backward(const LayerPass& pass, const Operands& of) override {
    for (std::size_t input = 0; input < 2; ++input) {
      if (!of.by_inputs[input]) continue;
      const std::size_t other = 1 - input;
      for (int row = 0; row < pass.groups * shape.channels; ++row) {
        const V *d = of.by_output + static_cast<std::ptrdiff_t>(row) * shape.plane(), *factor = row_of(of.inputs[other], other, row);
        V* to = row_of(of.by_inputs[input], input, row);
        const auto term = [&](int i) __attribute__((always_inline)) { return d[i] * factor[i * step_[other]]; };
        if (step_[input] == 0) {
          *to = sum_of(shape.plane(), term);
        } else {
          for (int i = 0; i < shape.plane(); ++i) to[i] = term(i);
        }
      }
    }
  }

 private:
  template <class T>
  T* row_of(T* value, std::size_t input, int row) const {
    return value + static_cast<std::ptrdiff_t>(row) * (step_[input] ? shape.plane() : 1);
  }

  int step_[2];  // 0 for an input with one entry per channel
};

}  // namespace clops::CLOPS_VARIANT
