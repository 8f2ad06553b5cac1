// What a layer is: it reads its settings, and computes values forward and gradients backward.
//
// To add a layer, write a class like those beside this file, and enter it in the table of program.hpp. The memory of a
// value is [groups][channels][height][width] vectors; lane l of group g is instance kLanes * g + l of the batch.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <stdexcept>

#include "../frames.hpp"
#include "../list.hpp"
#include "../programs.hpp"

namespace clops::CLOPS_VARIANT {

// Throws an error with a sentence, formatted as by printf.
[[noreturn]] __attribute__((format(printf, 1, 2))) inline void refuse(const char* format, ...) {
  char sentence[200];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  throw std::invalid_argument(sentence);
}

struct Shape {
  int channels, height, width;

  int plane() const { return height * width; }
  int size() const { return channels * plane(); }

  // The part of a value of this shape that belongs to a group of instances.
  template <class T>
  T* of_group(T* value, int group) const {
    return value + static_cast<std::ptrdiff_t>(group) * size();
  }
  std::ptrdiff_t size_of_groups(int groups) const { return static_cast<std::ptrdiff_t>(groups) * size(); }

  bool operator==(const Shape& other) const {
    return channels == other.channels && height == other.height && width == other.width;
  }
};

// A number along height and one along width.
struct Pair {
  int height, width;
};

// The settings of one layer, and the memory that they refer to.
class Fields {
 public:
  Fields(const ProgramDescription& program, const LayerDescription& layer) : program_(program), layer_(layer) {}

  const char* text(const char* name) const { return find(name, 0).text; }
  double number(const char* name) const { return find(name, 1).numbers[0]; }
  int integer(const char* name, int least = 0) const { return as_integer(find(name, 1), 0, least); }
  bool flag(const char* name) const { return integer(name) != 0; }
  Pair pair(const char* name, int least) const {
    const Field& field = find(name, 2);
    return {as_integer(field, 0, least), as_integer(field, 1, least)};
  }
  // Entry i of `count` numbers.
  int entry(const char* name, int count, int i, int least = 0) const { return as_integer(find(name, count), i, least); }

  // The offset of `size` parameters; -1 if the layer does without.
  std::ptrdiff_t parameters(const char* name, std::ptrdiff_t size) const {
    const std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(find(name, 1).numbers[0]);
    if (offset < -1 || (offset >= 0 && offset + size > static_cast<std::ptrdiff_t>(program_.parameter_count))) {
      refuse("%s: %s needs %td parameters from offset %td, which are not in the vector of parameters", layer_.kind, name, size, offset);
    }
    return offset;
  }

  // A buffer of `size` numbers.
  float* buffer(const char* name, int size) const {
    const int number = integer(name, -1);
    if (number < 0) refuse("%s: %s is missing; without running statistics the layer is left to PyTorch", layer_.kind, name);
    if (number >= program_.buffer_count || program_.buffers[number].size != static_cast<std::size_t>(size)) {
      refuse("%s: buffer %d must exist and hold %d numbers", layer_.kind, number, size);
    }
    return program_.buffers[number].at;
  }

  // Call last: refuses a field that the layer does not know.
  void refuse_others() const {
    for (int i = 0; i < layer_.field_count; ++i) {
      if (!(read_ >> i & 1)) refuse("%s has no field %s", layer_.kind, layer_.fields[i].name);
    }
  }

  const char* kind() const { return layer_.kind; }

 private:
  const Field& find(const char* name, int count) const {
    for (int i = 0; i < layer_.field_count; ++i) {
      const Field& field = layer_.fields[i];
      if (std::strcmp(field.name, name) != 0) continue;
      read_ |= 1ull << i;
      const bool fits = count == 0 ? field.text != nullptr : !field.text && field.count == count;
      if (!fits) {
        const char* wanted = count == 0 ? "a text" : count == 1 ? "a number" : "a row of numbers of another length";
        refuse("%s: %s must be %s", layer_.kind, name, wanted);
      }
      return field;
    }
    refuse("%s: field %s is missing", layer_.kind, name);
  }

  int as_integer(const Field& field, int i, int least) const {
    const double number = field.numbers[i];
    if (!(number >= least && number <= 1 << 30) || number != static_cast<int>(number)) {
      refuse("%s: %s must be an integer of at least %d", layer_.kind, field.name, least);
    }
    return static_cast<int>(number);
  }

  const ProgramDescription& program_;
  const LayerDescription& layer_;
  mutable unsigned long long read_ = 0;
};

// Where gradients with respect to parameters go: sums over instances, or one number an instance.
struct Gradient {
  float* sums;  // [parameters]
  V* each;      // [parameters] vectors over the instances of one group, or null

  // Adds one parameter's contributions.
  CLOPS_INLINE void add(std::ptrdiff_t parameter, V by_instance) const {
    if (each) {
      each[parameter] += by_instance;
    } else {
      sums[parameter] += static_cast<float>(sum(by_instance));
    }
  }

  // The same for `count` adjacent parameters. One transposition sums kLanes of them.
  void add(std::ptrdiff_t parameter, const V* by_instance, int count) const {
    if (each) {
      for (int i = 0; i < count; ++i) each[parameter + i] += by_instance[i];
      return;
    }
    for (int first = 0; first < count; first += kLanes) {
      const int width = count - first < kLanes ? count - first : kLanes;
      V block[kLanes] = {};
      for (int i = 0; i < width; ++i) block[i] = by_instance[first + i];
      const V totals = clops::CLOPS_VARIANT::sums(block);
      for (int i = 0; i < width; ++i) sums[parameter + first + i] += totals[i];
    }
  }
};

// One pass over a batch, as the layers see it.
struct LayerPass {
  int count, groups;  // instances, groups of at most kLanes
  const float* parameters;
  bool batch_statistics, track;
  bool folded;                // whether absorbed layers are computed by those before them
  const Keys* keys;           // null without dropout
  const std::int64_t* draws;  // [groups][kLanes]
  std::uint32_t words;        // words of one draw
  V* scratch;                 // as many vectors as the greediest layer wants
  Gradient gradient;

  // 1 for lanes with an instance, 0 for the others.
  V present(int group) const { return group_of(count, group).present(); }
};

// The values that a layer reads and writes, and the gradients with respect to them.
struct Operands {
  const V* const* inputs;
  V* output;
  V* const* by_inputs;  // to be overwritten; null where nobody needs it
  const V* by_output;
};

class Layer {
 public:
  Shape shape{};  // of the output
  bool learns = false;  // whether it has parameters

  virtual ~Layer() = default;
  // Vectors of `LayerPass::scratch`.
  virtual std::size_t scratch() const { return 0; }
  // Called once before a pass; parameters do not change until its end.
  virtual void prepare(const LayerPass&) {}
  virtual void forward(const LayerPass& pass, const Operands& of) = 0;
  virtual void backward(const LayerPass& pass, const Operands& of) = 0;
  // Whether this layer computes `next`, the only one that reads its output, too: always, or in a folded pass.
  virtual bool absorbs(const Layer&) { return false; }
  virtual bool folds(const Layer&) { return false; }
  // Whether `backward` may write the gradient with respect to the only input over that with respect to the output.
  virtual bool in_place() const { return false; }
  // The number of units of an instance that a layer of dropout drops.
  virtual int units() const { return 0; }
};

// The shapes of a layer's inputs.
using Shapes = List<Shape>;

inline const Shape& only(const Fields& fields, const Shapes& inputs) {
  if (inputs.size() != 1) refuse("%s has one input", fields.kind());
  return inputs[0];
}

}  // namespace clops::CLOPS_VARIANT
