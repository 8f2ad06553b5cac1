// Dropout of entries or of whole channels, with masks as in clops_sweep/learning/networks/dropout.py.
//
// The units of an instance are numbered over all layers of dropout of a program. Unit u of a draw depends on one half of
// the draw's word u / 2.
#pragma once

#include <math.h>

#include "../masks.hpp"
#include "layer.hpp"

namespace clops::CLOPS_VARIANT {

class Dropout final : public Layer {
 public:
  int first_unit = 0;  // set by the program

  Dropout(const Fields& fields, const Shapes& inputs) {
    shape = only(fields, inputs);
    whole_channels_ = fields.flag("whole_channels");
    const double probability = fields.number("probability");
    if (!(probability >= 0 && probability <= 1)) refuse("dropout: probability must be between 0 and 1");
    scale_ = probability < 1 ? static_cast<float>(1 / (1 - probability)) : 0.0f;
    const double threshold = -32768 + rint(probability * 65536);
    drops_all_ = threshold > 32767;
    if (!drops_all_) threshold_ = static_cast<std::int32_t>(threshold) * 65536;
  }

  int units() const override { return whole_channels_ ? shape.channels : shape.size(); }

  void forward(const LayerPass& pass, const Operands& of) override { apply(pass, of.inputs[0], of.output); }

  void backward(const LayerPass& pass, const Operands& of) override {
    if (of.by_inputs[0]) apply(pass, of.by_output, of.by_inputs[0]);
  }

 private:
  void apply(const LayerPass& pass, const V* from, V* to) const {
    const int entries = whole_channels_ ? shape.plane() : 1;  // of a unit
    for (int g = 0; g < pass.groups; ++g) {
      if (!pass.keys) {
        std::memcpy(static_cast<void*>(to), from, static_cast<std::size_t>(shape.size()) * sizeof(V));
        from += shape.size();
        to += shape.size();
        continue;
      }
      U counters = {}, second = {};
      for (int l = 0; l < kLanes; ++l) {
        counters[l] = static_cast<std::uint32_t>(pass.draws[g * kLanes + l]) * pass.words + pass.keys->first;
      }
      second += pass.keys->second;
      U word = {};
      for (int unit = first_unit; unit < first_unit + units(); ++unit) {
        if (unit % 2 == 0 || unit == first_unit) word = mixed(counters + static_cast<std::uint32_t>(unit / 2), second);
        const I bits = reinterpret_cast<I>(unit % 2 == 0 ? word << 16 : word);
        const auto dropped = drops_all_ ? ~I{} : bits < threshold_;
        for (int i = 0; i < entries; ++i, ++from, ++to) *to = dropped ? V{} : *from * scale_;
      }
    }
  }

  bool whole_channels_ = false, drops_all_ = false;
  float scale_ = 1;
  std::int32_t threshold_ = 0;  // of 16 bits in the upper half of a word; the lower half has no effect
};

}  // namespace clops::CLOPS_VARIANT
