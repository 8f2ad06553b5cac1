// Layers that move entries without computing.
#pragma once

#include "layer.hpp"

namespace clops::CLOPS_VARIANT {

// The same entries in the same order; the program lets both values share their memory.
class Reshape final : public Layer {
 public:
  Reshape(const Fields& fields, const Shapes& inputs) {
    const Shape& input = only(fields, inputs);
    shape = {fields.entry("shape", 3, 0, 1), fields.entry("shape", 3, 1, 1), fields.entry("shape", 3, 2, 1)};
    if (shape.size() != input.size()) refuse("reshape: the new shape has %d entries, not %d", shape.size(), input.size());
  }

  void forward(const LayerPass&, const Operands&) override {}
  void backward(const LayerPass&, const Operands&) override {}
};

// Values joined along their channels.
class Concatenate final : public Layer {
 public:
  Concatenate(const Fields& fields, const Shapes& inputs) {
    if (inputs.size() == 0) refuse("%s needs an input", fields.kind());
    shape = {0, inputs[0].height, inputs[0].width};
    for (const Shape& input : inputs) {
      if (input.height != shape.height || input.width != shape.width) refuse("concatenate needs inputs of equal height and width");
      shape.channels += input.channels;
      sizes_.append(input.size());
    }
  }

  void forward(const LayerPass& pass, const Operands& of) override {
    for_parts(pass, [&](std::size_t input, std::ptrdiff_t part, std::ptrdiff_t whole, std::size_t bytes) {
      std::memcpy(static_cast<void*>(of.output + whole), of.inputs[input] + part, bytes);
    });
  }

  void backward(const LayerPass& pass, const Operands& of) override {
    for_parts(pass, [&](std::size_t input, std::ptrdiff_t part, std::ptrdiff_t whole, std::size_t bytes) {
      if (of.by_inputs[input]) std::memcpy(static_cast<void*>(of.by_inputs[input] + part), of.by_output + whole, bytes);
    });
  }

 private:
  // Calls `body(input, first entry in it, first entry in the output, bytes)` for the part of every group and input.
  template <class Body>
  void for_parts(const LayerPass& pass, Body body) const {
    std::ptrdiff_t whole = 0;
    for (int g = 0; g < pass.groups; ++g) {
      for (std::size_t i = 0; i < sizes_.size(); ++i) {
        body(i, static_cast<std::ptrdiff_t>(g) * sizes_[i], whole, static_cast<std::size_t>(sizes_[i]) * sizeof(V));
        whole += sizes_[i];
      }
    }
  }

  List<int> sizes_;
};

// Axis i of the output is axis order[i] of the input.
class Permute final : public Layer {
 public:
  Permute(const Fields& fields, const Shapes& inputs) {
    const Shape& input = only(fields, inputs);
    const int lengths[3] = {input.channels, input.height, input.width}, distances[3] = {input.plane(), input.width, 1};
    int seen = 0, of_output[3];
    for (int i = 0; i < 3; ++i) {
      const int axis = fields.entry("order", 3, i);
      if (axis > 2 || (seen >> axis & 1)) refuse("permute: order must hold 0, 1 and 2");
      seen |= 1 << axis;
      of_output[i] = lengths[axis];
      distances_[i] = distances[axis];
    }
    shape = {of_output[0], of_output[1], of_output[2]};
  }

  void forward(const LayerPass& pass, const Operands& of) override {
    for_entries(pass, [&](std::ptrdiff_t input, std::ptrdiff_t output) { of.output[output] = of.inputs[0][input]; });
  }

  void backward(const LayerPass& pass, const Operands& of) override {
    if (!of.by_inputs[0]) return;
    for_entries(pass, [&](std::ptrdiff_t input, std::ptrdiff_t output) { of.by_inputs[0][input] = of.by_output[output]; });
  }

 private:
  // Calls `body(entry of the input, entry of the output)`.
  template <class Body>
  void for_entries(const LayerPass& pass, Body body) const {
    std::ptrdiff_t output = 0;
    for (std::ptrdiff_t g = 0; g < pass.groups; ++g) {
      for (int c = 0; c < shape.channels; ++c) {
        for (int y = 0; y < shape.height; ++y) {
          const std::ptrdiff_t row = g * shape.size() + c * distances_[0] + y * distances_[1];
          for (int x = 0; x < shape.width; ++x) body(row + x * distances_[2], output++);
        }
      }
    }
  }

  int distances_[3];
};

}  // namespace clops::CLOPS_VARIANT
