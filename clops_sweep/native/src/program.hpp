// A network as a program of layers: builds the layers, plans their memory, and runs passes over batches.
//
// To add a layer, write a class in layers/, and enter it in `kLayers`.
#pragma once

#include "layers/arithmetic.hpp"
#include "layers/block_norm.hpp"
#include "layers/convolution.hpp"
#include "layers/dropout.hpp"
#include "layers/linear.hpp"
#include "layers/movement.hpp"
#include "layers/pool.hpp"

namespace clops::CLOPS_VARIANT {

struct Maker {
  const char* kind;
  Layer* (*make)(const Fields& fields, const Shapes& inputs);
};
template <class L>
Layer* make(const Fields& fields, const Shapes& inputs) {
  return new L(fields, inputs);
}

constexpr Maker kLayers[] = {
    {"convolution", make<Convolution>},
    {"batch_norm", make<BatchNorm>},
    {"group_norm", make<GroupNorm>},
    {"layer_norm", make<LayerNorm>},
    {"activation", make<Activation>},
    {"max_pool", make<MaxPool>},
    {"average_pool", make<AveragePool>},
    {"adaptive_average_pool", make<AdaptiveAveragePool>},
    {"adaptive_max_pool", make<AdaptiveMaxPool>},
    {"dropout", make<Dropout>},
    {"linear", make<Linear>},
    {"add", make<Add>},
    {"multiply", make<Multiply>},
    {"concatenate", make<Concatenate>},
    {"permute", make<Permute>},
    {"reshape", make<Reshape>},
};

inline Layer* made(const Fields& fields, const Shapes& inputs) {
  for (const Maker& maker : kLayers) {
    if (std::strcmp(maker.kind, fields.kind()) == 0) return maker.make(fields, inputs);
  }
  refuse("%s is no layer that the kernels know", fields.kind());
}

constexpr int kMostEntries = 1 << 26;  // of a value, so that distances fit into an int

// Memory of values with a size and a time: those that are needed at the same time do not overlap. Sizes and places are
// vectors of one group of instances.
class Arena {
 public:
  // Returns the place of a value that is needed from step `first` to step `last`.
  std::ptrdiff_t place(std::ptrdiff_t size, int first, int last) {
    std::ptrdiff_t at = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (const Region& other : regions_) {
        const bool together = other.first <= last && first <= other.last;
        if (together && at < other.at + other.size && other.at < at + size) {
          at = other.at + other.size;
          moved = true;
        }
      }
    }
    regions_.append({at, size, first, last});
    if (at + size > size_) size_ = at + size;
    return at;
  }

  std::ptrdiff_t size() const { return size_; }

 private:
  struct Region {
    std::ptrdiff_t at, size;
    int first, last;
  };
  List<Region> regions_;
  std::ptrdiff_t size_ = 0;
};

// A layer with the numbers of its values.
struct Step {
  Layer* layer;
  int first_input, input_count;  // in Program::inputs_
  int output;
  bool folded;  // the layer before it computes it in a folded pass
};

constexpr int kForever = 1 << 30;

class Program {
 public:
  explicit Program(const ProgramDescription& description) {
    try {
      build(description);
    } catch (...) {
      release();
      throw;
    }
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { release(); }

  const Shape& output_shape() const { return shapes_[output_]; }
  int outputs() const { return output_shape().size(); }

  void forward(const float* parameters, const TrainingPass& of, float* logits) {
    pass_ = LayerPass{};
    pass_.count = of.count;
    pass_.groups = groups_of(of.count);
    pass_.batch_statistics = of.batch_statistics;
    pass_.track = of.track;
    count_ = 0;  // until all went well
    prepare(pass_, parameters, of.keys);
    for (int g = 0; g < pass_.groups; ++g) {
      const Group group = group_of(of.count, g);
      for (int l = 0; l < kLanes; ++l) draws_[g * kLanes + l] = of.keys ? of.draws[group.at(l)] : 0;
    }
    training_.at_least((values_size_ + gradients_.size()) * pass_.groups);
    for (int g = 0; g < pass_.groups; ++g) load(of.frames, group_of(of.count, g), shapes_[0].of_group(value(0), g));
    for (const Step& step : steps_) run(step, &Layer::forward);
    for (int g = 0; g < pass_.groups; ++g) {
      const Group group = group_of(of.count, g);
      const V* from = value(output_) + static_cast<std::ptrdiff_t>(g) * outputs();
      for (int l = 0; l < group.count; ++l) store_logits(from, l, logits + static_cast<std::ptrdiff_t>(group.at(l)) * outputs());
    }
    count_ = of.count;
  }

  void backward(const float* parameters, const float* by_logits, const Gradient& gradient) {
    if (count_ == 0) refuse("a backward pass needs a forward pass before it");
    count_ = 0;
    pass_.parameters = parameters;
    pass_.gradient = gradient;
    if (!learns_[output_]) return;
    V* to = gradient_of(output_);
    for (int g = 0; g < pass_.groups; ++g, to += outputs()) {
      const Group group = group_of(pass_.count, g);
      for (int c = 0; c < outputs(); ++c) {
        to[c] = V{};  // lanes without an instance have no gradient
        for (int l = 0; l < group.count; ++l) to[c][l] = by_logits[static_cast<std::ptrdiff_t>(group.at(l)) * outputs() + c];
      }
    }
    for (std::size_t i = steps_.size(); i-- > 0;) differentiate(steps_[i]);
  }

  void sum_of_each(const float* parameters, const float* frames, int count, const float* by_logits, bool absolute, float* sums) {
    List<V> each;
    each.at_least(parameter_count_);
    List<float> logits;
    logits.at_least(kLanes * outputs());
    const std::ptrdiff_t frame = shapes_[0].size();
    for (int first = 0; first < count; first += kLanes) {
      const int size = count - first < kLanes ? count - first : kLanes;
      forward(parameters, {frames + first * frame, size, nullptr, nullptr, false, false}, logits.data());
      std::memset(static_cast<void*>(each.data()), 0, parameter_count_ * sizeof(V));
      backward(parameters, by_logits + static_cast<std::ptrdiff_t>(first) * outputs(), {nullptr, each.data()});
      for (std::size_t i = 0; i < parameter_count_; ++i) {
        const V g = each[i];
        each[i] = absolute ? maximum(g, -g) : g * g;
      }
      Gradient{sums, nullptr}.add(0, each.data(), static_cast<int>(parameter_count_));
    }
  }

  // The layers before the first dropout are computed once for all samples. A small group leaves room for several samples
  // of its instances: lane l holds sample first + l / group.count of instance group.at(l).
  void predict(const float* parameters, const EvaluationPass& of, float* logits) {
    pass_ = LayerPass{};
    pass_.count = kLanes;
    pass_.groups = 1;
    pass_.folded = true;
    count_ = 0;
    prepare(pass_, parameters, of.keys);
    prediction_.at_least(predicted_.size());
    const int samples = of.samples;
    for (int g = 0; g < groups_of(of.count); ++g) {
      const Group group = group_of(of.count, g);
      load(of.frames, group, prediction_.data() + place_[0]);
      run_folded(0, of.keys ? first_dropout_ : steps_.size());
      const int room = kLanes / group.count;
      for (int first = 0; first < samples; first += room) {
        const auto sample = [&](int lane) { return first + lane / group.count; };
        const auto result = [&](int lane) { return static_cast<std::ptrdiff_t>(group.at(lane)) * samples + sample(lane); };
        if (of.keys) {
          for (int l = 0; l < kLanes; ++l) draws_[l] = of.first + result(l);
          run_folded(first_dropout_, steps_.size());
        }
        for (int l = 0; l < kLanes && sample(l) < samples && l / group.count < room; ++l) {
          store_logits(prediction_.data() + place_[output_], l, logits + result(l) * outputs());
        }
      }
    }
  }

 private:
  void release() {
    for (const Step& step : steps_) delete step.layer;
    for (Layer* layer : absorbed_) delete layer;
  }

  void build(const ProgramDescription& description) {
    const int* shape = description.shape;
    if (shape[0] < 1 || shape[1] < 1 || shape[2] < 1) refuse("frames must have a channel and a sample");
    if (description.layer_count < 1) refuse("a program needs a layer");
    parameter_count_ = description.parameter_count;
    List<int> number;  // of the value that a number of the description stands for
    List<int> readers;
    for (int i = 0; i < description.layer_count; ++i) {
      const LayerDescription& layer = description.layers[i];
      for (int k = 0; k < layer.input_count; ++k) count_at(readers, layer.inputs[k]);
    }
    add_value({shape[0], shape[1], shape[2]}, false);
    set_at(number, 0, 0);
    for (int i = 0; i < description.layer_count; ++i) add_layer(description, description.layers[i], number, readers);
    if (steps_.size() == 0) refuse("a program needs a layer that computes");
    output_ = number[description.layers[description.layer_count - 1].output];
    fold_layers();
    plan_training();
    plan_prediction();
  }

  static void count_at(List<int>& counts, int i) {
    if (i < 0 || i > 1 << 20) refuse("%d is no number of a value", i);
    while (static_cast<int>(counts.size()) <= i) counts.append(0);
    ++counts[i];
  }
  static void set_at(List<int>& numbers, int i, int to) {
    if (i < 0 || i > 1 << 20) refuse("%d is no number of a value", i);
    while (static_cast<int>(numbers.size()) <= i) numbers.append(-1);
    if (numbers[i] >= 0) refuse("two layers write value %d", i);
    numbers[i] = to;
  }

  int add_value(const Shape& shape, bool learns) {
    const double entries = static_cast<double>(shape.channels) * shape.height * shape.width;
    if (entries > kMostEntries) refuse("a value of %.0f entries is too large; at most %d", entries, kMostEntries);
    shapes_.append(shape);
    learns_.append(learns);
    storage_.append(static_cast<int>(storage_.size()));
    return static_cast<int>(shapes_.size()) - 1;
  }

  void add_layer(const ProgramDescription& description, const LayerDescription& layer, List<int>& number, const List<int>& readers) {
    const Fields fields(description, layer);
    Shapes shapes;
    const int first_input = static_cast<int>(inputs_.size());
    bool learns = false;
    for (int k = 0; k < layer.input_count; ++k) {
      const int input = layer.inputs[k];
      const bool written = input >= 0 && input < static_cast<int>(number.size()) && number[input] >= 0;
      if (!written) refuse("%s reads value %d before it is written", layer.kind, input);
      const int of = number[input];
      inputs_.append(of);
      shapes.append(shapes_[of]);
      learns = learns || learns_[of];
    }
    Layer* next = made(fields, shapes);
    absorbed_.append(next);  // owned from now on
    fields.refuse_others();
    const int input = layer.input_count ? inputs_[first_input] : 0;
    const bool only_reader = layer.input_count == 1 && readers[layer.inputs[0]] == 1;
    if (only_reader && steps_.size() > 0 && steps_.last().output == input && steps_.last().layer->absorbs(*next)) {
      set_at(number, layer.output, input);
      return;
    }
    const int output = add_value(next->shape, learns || next->learns);
    set_at(number, layer.output, output);
    if (dynamic_cast<const Reshape*>(next)) {
      storage_[output] = storage_[input];
      return;
    }
    if (auto* dropout = dynamic_cast<Dropout*>(next)) {
      dropout->first_unit = units_;
      units_ += dropout->units();
    }
    absorbed_.remove_last();
    steps_.append({next, first_input, layer.input_count, output, false});
  }

  // Lets layers compute those after them, their only readers, in a folded pass.
  void fold_layers() {
    for (std::size_t i = 1; i < steps_.size(); ++i) {
      Step &before = steps_[i - 1], &step = steps_[i];
      if (step.input_count != 1 || before.folded) continue;
      const int input = inputs_[step.first_input];
      if (input == before.output && readers_of(storage_[input]) == 1) step.folded = before.layer->folds(*step.layer);
    }
  }

  int readers_of(int storage) const {
    int count = 0;
    for (const Step& step : steps_) {
      for (int k = 0; k < step.input_count; ++k) count += storage_of(step, k) == storage;
    }
    return count;
  }

  int storage_of(const Step& step, int input) const {
    return storage_[inputs_[step.first_input + input]];
  }
  int storage_of(const Step& step) const { return storage_[step.output]; }
  std::ptrdiff_t size_of(int storage) const { return shapes_[storage].size(); }

  // Values stay until the backward pass. A gradient is needed from the last layer that reads the value to the one that
  // writes it, or, where that layer and those before it compute in place, to the first of them. Layers overwrite
  // gradients: a further reader of a value writes into a region of its own, which is added.
  void plan_training() {
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      value_place_.append(values_size_);
      gradient_place_.append(-1);
      if (storage_[i] == static_cast<int>(i)) values_size_ += shapes_[i].size();
    }
    const int count = static_cast<int>(steps_.size());
    List<int> written(shapes_.size(), -1), last_reader(shapes_.size(), -1);  // steps that write and read a value
    for (int i = 0; i < count; ++i) {
      written[storage_of(steps_[i])] = i;
      for (int k = 0; k < steps_[i].input_count; ++k) last_reader[storage_of(steps_[i], k)] = i;
    }
    const auto in_place = [&](int i) {
      const int input = steps_[i].input_count == 1 ? storage_of(steps_[i], 0) : -1;
      return input >= 0 && steps_[i].layer->in_place() && learns_[input] && last_reader[input] == i;
    };
    const auto end_of = [&](int value) {
      while (in_place(written[value])) value = storage_of(steps_[written[value]], 0);
      return count - written[value];
    };
    const int last = storage_[output_];
    gradient_place_[last] = gradients_.place(size_of(last), 0, end_of(last));
    for (int i = count - 1; i >= 0; --i) {
      const Step& step = steps_[i];
      const std::size_t wanted = step.layer->scratch();
      if (wanted > scratch_size_) scratch_size_ = wanted;
      const bool differentiated = learns_[step.output] && gradient_place_[storage_of(step)] >= 0;
      for (int k = 0; k < step.input_count; ++k) {
        const int input = storage_of(step, k);
        std::ptrdiff_t& place = gradient_place_[input];
        std::ptrdiff_t further = -1;
        if (differentiated && learns_[input]) {
          if (place < 0) {
            place = in_place(i) ? gradient_place_[storage_of(step)] : gradients_.place(size_of(input), count - i, end_of(input));
          } else {
            further = gradients_.place(size_of(input), count - i, count - i);
          }
        }
        set_further(step.first_input + k, further);
      }
    }
  }

  void set_further(int input, std::ptrdiff_t place) {
    while (further_.size() < inputs_.size()) further_.append(-1);
    further_[input] = place;
  }

  // What the layers before the first dropout leave for those after it stays; those are run again and again.
  void plan_prediction() {
    const int count = static_cast<int>(steps_.size());
    first_dropout_ = steps_.size();
    for (std::size_t i = steps_.size(); i-- > 0;) {
      if (dynamic_cast<const Dropout*>(steps_[i].layer)) first_dropout_ = i;
    }
    List<int> first(shapes_.size(), 0), last(shapes_.size(), 0), folded(shapes_.size(), 0);
    for (std::size_t i = 0; i < shapes_.size(); ++i) folded[i] = storage_[i];
    for (int i = 0; i < count; ++i) {
      const Step& step = steps_[i];
      const int output = storage_of(step);
      if (step.folded) folded[output] = folded[storage_of(step, 0)];
      else first[output] = i;
      for (int k = 0; k < step.input_count; ++k) {
        int& end = last[folded[storage_of(step, k)]];
        const bool stays = i >= static_cast<int>(first_dropout_);
        end = stays ? kForever : i;
      }
    }
    last[folded[storage_[output_]]] = kForever;
    List<std::ptrdiff_t> place(shapes_.size(), -1);
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      const int storage = folded[storage_[i]];
      const int until = last[storage] > first[storage] ? last[storage] : first[storage];
      if (place[storage] < 0) place[storage] = predicted_.place(size_of(storage), first[storage], until);
      place_.append(place[storage]);
    }
  }

  void prepare(LayerPass& pass, const float* parameters, const Keys* keys) {
    pass.parameters = parameters;
    if (keys) keys_ = *keys;  // the backward pass needs them, too
    pass.keys = keys ? &keys_ : nullptr;
    pass.words = static_cast<std::uint32_t>((units_ + 1) / 2);
    scratch_.at_least(scratch_size_);
    draws_.at_least(pass.groups * kLanes);
    pass.scratch = scratch_.data();
    pass.draws = draws_.data();
    for (std::size_t i = steps_.size(); i-- > 0;) steps_[i].layer->prepare(pass);  // layers fold those after them
  }

  // Frames of a group, transposed so that each sample is one vector. Unused lanes repeat instances.
  void load(const float* frames, const Group& group, V* to) const {
    const int size = shapes_[0].size();
    const float* frame[kLanes];
    for (int l = 0; l < kLanes; ++l) frame[l] = frames + static_cast<std::ptrdiff_t>(group.at(l)) * size;
    int t = 0;
    for (; t + kLanes <= size; t += kLanes) {
      V block[kLanes];
      CLOPS_UNROLL for (int l = 0; l < kLanes; ++l) block[l] = clops::CLOPS_VARIANT::load(frame[l] + t);
      transpose(block);
      CLOPS_UNROLL for (int l = 0; l < kLanes; ++l) to[t + l] = block[l];
    }
    for (; t < size; ++t) {
      for (int l = 0; l < kLanes; ++l) to[t][l] = frame[l][t];
    }
  }

  void store_logits(const V* from, int lane, float* to) const {
    for (int c = 0; c < outputs(); ++c) to[c] = from[c][lane];
  }

  V* value(int number) {
    return training_.data() + value_place_[storage_[number]] * pass_.groups;
  }
  V* gradient_at(std::ptrdiff_t place) { return training_.data() + (values_size_ + place) * pass_.groups; }
  V* gradient_of(int number) {
    const std::ptrdiff_t place = gradient_place_[storage_[number]];
    return place < 0 ? nullptr : gradient_at(place);
  }

  void run(const Step& step, void (Layer::*function)(const LayerPass&, const Operands&)) {
    List<const V*> inputs;
    for (int k = 0; k < step.input_count; ++k) inputs.append(value(inputs_[step.first_input + k]));
    (step.layer->*function)(pass_, {inputs.data(), value(step.output), nullptr, nullptr});
  }

  void run_folded(std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      const Step& step = steps_[i];
      if (step.folded) continue;
      List<const V*> inputs;
      for (int k = 0; k < step.input_count; ++k) inputs.append(prediction_.data() + place_[inputs_[step.first_input + k]]);
      step.layer->forward(pass_, {inputs.data(), prediction_.data() + place_[step.output], nullptr, nullptr});
    }
  }

  void differentiate(const Step& step) {
    const V* by_output = gradient_of(step.output);
    if (!by_output || !learns_[step.output]) return;
    List<const V*> inputs;
    List<V*> by_inputs;
    for (int k = 0; k < step.input_count; ++k) {
      const int i = step.first_input + k;
      const int number = inputs_[i];
      inputs.append(value(number));
      const bool needed = learns_[storage_[number]];
      by_inputs.append(!needed ? nullptr : further_[i] >= 0 ? gradient_at(further_[i]) : gradient_of(number));
    }
    step.layer->backward(pass_, {inputs.data(), value(step.output), by_inputs.data(), by_output});
    for (int k = 0; k < step.input_count; ++k) {
      const int i = step.first_input + k;
      if (further_[i] < 0) continue;
      const V* from = gradient_at(further_[i]);
      V* to = gradient_of(inputs_[i]);
      const std::ptrdiff_t size = static_cast<std::ptrdiff_t>(pass_.groups) * shapes_[inputs_[i]].size();
      for (std::ptrdiff_t e = 0; e < size; ++e) to[e] += from[e];
    }
  }

  List<Step> steps_;
  List<Layer*> absorbed_;  // layers that others compute, and those that need no computation
  List<int> inputs_;       // of all steps: numbers of values
  std::size_t parameter_count_ = 0, first_dropout_ = 0, scratch_size_ = 0;
  int units_ = 0;
  int output_ = 0;  // number of the value of the logits

  // By number of a value. Values with the same storage share their memory.
  List<Shape> shapes_;
  List<int> storage_;
  List<bool> learns_;  // whether a parameter has an effect on it
  List<std::ptrdiff_t> value_place_, gradient_place_, place_;
  List<std::ptrdiff_t> further_;  // by entry of inputs_: see plan_training
  std::ptrdiff_t values_size_ = 0;
  Arena gradients_, predicted_;

  LayerPass pass_{};
  Keys keys_{};
  int count_ = 0;  // instances of the last forward pass, until it is differentiated
  List<V> training_, prediction_, scratch_;
  List<std::int64_t> draws_;
};

}  // namespace clops::CLOPS_VARIANT
