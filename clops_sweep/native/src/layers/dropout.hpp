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

  bool in_place() const override { return true; }
  int units() const override { return whole_channels_ ? shape.channels : shape.size(); }

  void forward(const LayerPass& pass, const Operands& of) override { apply(pass, of.inputs[0], of.output); }

  void backward(const LayerPass& pass, const Operands& of) override {
    if (of.by_inputs[0]) apply(pass, of.by_output, of.by_inputs[0]);
  }

 private:
  void apply(const LayerPass& pass, const V* from, V* to) const {
    for (int g = 0; g < pass.groups; ++g, from += shape.size(), to += shape.size()) {
      if (!pass.keys) {
        if (to != from) std::memcpy(static_cast<void*>(to), from, static_cast<std::size_t>(shape.size()) * sizeof(V));
      } else if (whole_channels_) {
        for_units(pass, g, [&](int unit, auto dropped) __attribute__((always_inline)) {
          const int first = unit * shape.plane();
          for (int i = first; i < first + shape.plane(); ++i) to[i] = dropped ? V{} : from[i] * scale_;
        });
      } else {
        for_units(pass, g, [&](int unit, auto dropped) __attribute__((always_inline)) { to[unit] = dropped ? V{} : from[unit] * scale_; });
      }
    }
  }

  // Calls `body(unit, lanes that drop it)` for the units of this layer, two for each word.
  template <class Body>
  CLOPS_INLINE void for_units(const LayerPass& pass, int group, Body body) const {
    U counters = {}, second = {};
    for (int l = 0; l < kLanes; ++l) {
      counters[l] = static_cast<std::uint32_t>(pass.draws[group * kLanes + l]) * pass.words + pass.keys->first;
    }
    second += pass.keys->second;
    const I threshold = I{} + threshold_, always = I{} - (drops_all_ ? 1 : 0);
    const auto even = [&](U word) __attribute__((always_inline)) { return (reinterpret_cast<I>(word << 16) < threshold) | always; };
    const auto odd = [&](U word) __attribute__((always_inline)) { return (reinterpret_cast<I>(word) < threshold) | always; };
    const auto word_of = [&](int unit) __attribute__((always_inline)) {
      return mixed(counters + static_cast<std::uint32_t>((first_unit + unit) / 2), second);
    };
    int unit = 0;
    if (first_unit % 2 == 1 && units() > 0) body(unit++, odd(word_of(0)));
    for (; unit + 2 <= units(); unit += 2) {
      const U word = word_of(unit);
      body(unit, even(word));
      body(unit + 1, odd(word));
    }
    if (unit < units()) body(unit, even(word_of(unit)));
  }

  bool whole_channels_ = false, drops_all_ = false;
  float scale_ = 1;
  std::int32_t threshold_ = 0;  // of 16 bits in the upper half of a word; the lower half has no effect
};

}  // namespace clops::CLOPS_VARIANT
