// Maximum, and the ReLU after it, and average over windows, of a fixed size or as many windows as wanted.
#pragma once

#include "../tile.hpp"
#include "activation.hpp"
#include "layer.hpp"

namespace clops::CLOPS_VARIANT {

// Entries first, first + step, ..., below last, of one axis; `size` is what an average divides by.
struct Window {
  int first, last, step, size;
};
using Windows = List<Window>;

using Entry = std::ptrdiff_t;  // the number of an entry of a value

// Windows as PyTorch lays them, in `to`. They never begin in the padding after the end.
inline void lay_windows(int length, int kernel, int stride, int padding, int dilation, bool ceil_mode, bool with_padding, Windows& to) {
  if (2 * padding > kernel) refuse("pool: a padding of %d is more than half of the kernel of %d", padding, kernel);
  const int free = length + 2 * padding - dilation * (kernel - 1) - 1;
  if (free < 0) refuse("pool: a window of %d does not fit into %d entries", kernel, length);
  int count = (free + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (count - 1) * stride >= length + padding) --count;
  for (int i = 0; i < count; ++i) {
    int first = i * stride - padding;
    int last = first + dilation * (kernel - 1) + 1;
    const int within = last < length + padding ? last : length + padding;
    const int padded_size = within - first;
    while (first < 0) first += dilation;
    if (last > length) last = length;
    to.append({first, last, dilation, with_padding ? padded_size : last - first});
  }
}

// `count` windows of nearly equal size that cover the axis.
inline void spread_windows(int length, int count, Windows& to) {
  for (long long i = 0; i < count; ++i) {
    const int first = static_cast<int>(i * length / count), last = static_cast<int>(((i + 1) * length + count - 1) / count);
    to.append({first, last, 1, last - first});
  }
}

// The windows of a layer along both axes.
class Pool : public Layer {
 protected:
  enum class Sizes { fixed, adaptive };

  Pool(const Fields& fields, const Shapes& inputs, Sizes sizes, bool average) : input_(only(fields, inputs)) {
    if (sizes == Sizes::adaptive) {
      const Pair count = fields.pair("size", 1);
      spread_windows(input_.height, count.height, rows_);
      spread_windows(input_.width, count.width, columns_);
    } else {
      const Pair kernel = fields.pair("kernel", 1), stride = fields.pair("stride", 1), padding = fields.pair("padding", 0);
      const Pair dilation = average ? Pair{1, 1} : fields.pair("dilation", 1);
      const bool ceil_mode = fields.flag("ceil_mode"), with_padding = average && fields.flag("count_include_pad");
      lay_windows(input_.height, kernel.height, stride.height, padding.height, dilation.height, ceil_mode, with_padding, rows_);
      lay_windows(input_.width, kernel.width, stride.width, padding.width, dilation.width, ceil_mode, with_padding, columns_);
    }
    shape = {input_.channels, static_cast<int>(rows_.size()), static_cast<int>(columns_.size())};
    width_ = common_width();
    disjoint_ = are_disjoint(rows_) && are_disjoint(columns_);
    covering_ = disjoint_ && covered(rows_) == input_.height && covered(columns_) == input_.width;
  }

  // Calls `body(Constant<width>)` with the width of windows that all are one row of as many adjacent entries; 0 for others.
  template <class Body>
  CLOPS_INLINE void with_width(Body body) const {
    if (width_ == 2) return body(Constant<2>{});
    if (width_ == 3) return body(Constant<3>{});
    if (width_ == 4) return body(Constant<4>{});
    body(Constant<0>{});
  }

  // Calls `body(first entry of the input's plane, window of rows, window of columns, entry of the output)` for every window.
  template <class Body>
  CLOPS_INLINE void for_windows(const LayerPass& pass, Body body) const {
    std::ptrdiff_t entry = 0;
    for (std::ptrdiff_t plane = 0; plane < static_cast<std::ptrdiff_t>(pass.groups) * shape.channels; ++plane) {
      for (const Window& row : rows_) {
        for (const Window& column : columns_) body(plane * input_.plane(), row, column, entry++);
      }
    }
  }

  // Calls `body(entry)` for the entries of a window; `width` as in `with_width`.
  template <int width, class Body>
  CLOPS_INLINE void for_entries(std::ptrdiff_t plane, const Window& row, const Window& column, Body body) const {
    if constexpr (width > 0) {
      const std::ptrdiff_t start = plane + static_cast<std::ptrdiff_t>(row.first) * input_.width + column.first;
      CLOPS_UNROLL for (int x = 0; x < width; ++x) body(start + x);
      return;
    }
    for (int y = row.first; y < row.last; y += row.step) {
      const std::ptrdiff_t start = plane + static_cast<std::ptrdiff_t>(y) * input_.width;
      for (int x = column.first; x < column.last; x += column.step) body(start + x);
    }
  }

  // Calls `body(Constant<width>, add)`, where `add(entry, x)` adds x to the gradient with respect to an entry. Where no
  // two windows share an entry, that is to write it.
  template <class Body>
  CLOPS_INLINE void with_gradient(const LayerPass& pass, V* by_input, Body body) const {
    if (!covering_) std::memset(static_cast<void*>(by_input), 0, static_cast<std::size_t>(input_.size_of_groups(pass.groups)) * sizeof(V));
    with_width([&](auto width) __attribute__((always_inline)) {
      if (disjoint_) {
        body(width, [by_input](Entry at, V x) __attribute__((always_inline)) { by_input[at] = x; });
      } else {
        body(width, [by_input](Entry at, V x) __attribute__((always_inline)) { by_input[at] += x; });
      }
    });
  }

  Shape input_;
  Windows rows_, columns_;

 private:
  int common_width() const {
    int width = columns_[0].last - columns_[0].first;
    for (const Window& row : rows_) width = row.last - row.first == 1 ? width : 0;
    for (const Window& column : columns_) width = column.step == 1 && column.last - column.first == width ? width : 0;
    return width;
  }

  static bool are_disjoint(const Windows& windows) {
    bool disjoint = true;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      disjoint = disjoint && windows[i].step == 1 && (i == 0 || windows[i].first >= windows[i - 1].last);
    }
    return disjoint;
  }

  // How many entries disjoint windows cover.
  static int covered(const Windows& windows) {
    int count = 0;
    for (const Window& window : windows) count += window.last - window.first;
    return count;
  }

  int width_ = 0;
  bool disjoint_ = false, covering_ = false;
};

class MaxPool : public Pool {
 public:
  MaxPool(const Fields& fields, const Shapes& inputs) : MaxPool(fields, inputs, Sizes::fixed) {}

  bool absorbs(const Layer& next) override {
    const auto* activation = dynamic_cast<const Activation*>(&next);
    const bool fits = !relu_ && activation && activation->is_relu();
    relu_ = relu_ || fits;
    return fits;
  }

  // NaN is larger than all numbers.
  void forward(const LayerPass& pass, const Operands& of) override {
    const V least = all(relu_ ? 0.0f : -__builtin_inff());
    with_width([&](auto width) __attribute__((always_inline)) {
      for_windows(pass, [&](Entry plane, const Window& row, const Window& column, Entry to) __attribute__((always_inline)) {
        V best = least;
        for_entries<width.value>(plane, row, column, [&](Entry from) __attribute__((always_inline)) {
          const V x = of.inputs[0][from];
          best = ((x > best) | (x != x)) ? x : best;
        });
        of.output[to] = best;
      });
    });
  }

  // The first of the largest entries gets the gradient, unless ReLU stops it.
  void backward(const LayerPass& pass, const Operands& of) override {
    if (!of.by_inputs[0]) return;
    const V stopped = all(relu_ ? 0.0f : __builtin_nanf(""));  // no number is at most NaN
    with_gradient(pass, of.by_inputs[0], [&](auto width, auto add) __attribute__((always_inline)) {
      for_windows(pass, [&](Entry plane, const Window& row, const Window& column, Entry to) __attribute__((always_inline)) {
        const V best = of.output[to];
        V left = best <= stopped ? V{} : of.by_output[to];
        for_entries<width.value>(plane, row, column, [&](Entry from) __attribute__((always_inline)) {
          const auto is_best = of.inputs[0][from] == best;
          add(from, is_best ? left : V{});
          left = is_best ? V{} : left;
        });
      });
    });
  }

 protected:
  MaxPool(const Fields& fields, const Shapes& inputs, Sizes sizes) : Pool(fields, inputs, sizes, false) {}

 private:
  bool relu_ = false;
};

class AdaptiveMaxPool final : public MaxPool {
 public:
  AdaptiveMaxPool(const Fields& fields, const Shapes& inputs) : MaxPool(fields, inputs, Sizes::adaptive) {}
};

class AveragePool : public Pool {
 public:
  AveragePool(const Fields& fields, const Shapes& inputs) : AveragePool(fields, inputs, Sizes::fixed) {}

  void forward(const LayerPass& pass, const Operands& of) override {
    with_width([&](auto width) __attribute__((always_inline)) {
      for_windows(pass, [&](Entry plane, const Window& row, const Window& column, Entry to) __attribute__((always_inline)) {
        V total = {};
        for_entries<width.value>(plane, row, column, [&](Entry from) __attribute__((always_inline)) { total += of.inputs[0][from]; });
        of.output[to] = total * share(row, column);
      });
    });
  }

  void backward(const LayerPass& pass, const Operands& of) override {
    if (!of.by_inputs[0]) return;
    with_gradient(pass, of.by_inputs[0], [&](auto width, auto add) __attribute__((always_inline)) {
      for_windows(pass, [&](Entry plane, const Window& row, const Window& column, Entry to) __attribute__((always_inline)) {
        const V each = of.by_output[to] * share(row, column);
        for_entries<width.value>(plane, row, column, [&](Entry from) __attribute__((always_inline)) { add(from, each); });
      });
    });
  }

 protected:
  AveragePool(const Fields& fields, const Shapes& inputs, Sizes sizes) : Pool(fields, inputs, sizes, true) {}

 private:
  static float share(const Window& row, const Window& column) { return 1.0f / static_cast<float>(row.size * column.size); }
};

class AdaptiveAveragePool final : public AveragePool {
 public:
  AdaptiveAveragePool(const Fields& fields, const Shapes& inputs) : AveragePool(fields, inputs, Sizes::adaptive) {}
};

}  // namespace clops::CLOPS_VARIANT
