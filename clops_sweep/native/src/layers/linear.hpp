// A matrix product on the features of an instance. Weights are read where they are: each is needed once a group, so a
// copy in the order of the tiles would take as long as the product.
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
  }

  std::size_t scratch() const override { return static_cast<std::size_t>(kLanes) * vectors(); }

  void forward(const LayerPass& pass, const Operands& of) override {
    const float* bias = bias_ < 0 ? nullptr : pass.parameters + bias_;
    multiply(pass.groups, shape.channels, features_, {pass.parameters + weight_, 1, features_}, bias, of.inputs[0], of.output);
  }

  void backward(const LayerPass& pass, const Operands& of) override {
    for (int g = 0; g < pass.groups; ++g) {
      const V *x = input_.of_group(of.inputs[0], g), *d = shape.of_group(of.by_output, g);
      pass.gradient.each ? add_products_of_each(x, d, pass.gradient.each + weight_) : add_products(pass, x, d);
      if (bias_ >= 0) pass.gradient.add(bias_, d, shape.channels);
    }
    if (!of.by_inputs[0]) return;
    multiply(pass.groups, features_, shape.channels, {pass.parameters + weight_, features_, 1}, nullptr, of.by_output, of.by_inputs[0]);
  }

 private:
  // Y[m] = start[m] + sum_k w(k, m) X[k] for each group, two groups at a time; `start` may be null for zeros.
  static void multiply(int groups, int rows, int terms, Matrix<const float> w, const float* start, const V* x, V* y) {
    int g = 0;
    for (; g + 2 <= groups; g += 2, x += 2 * terms, y += 2 * rows) multiply_groups<2>(rows, terms, w, start, x, y);
    if (g < groups) multiply_groups<1>(rows, terms, w, start, x, y);
  }

  template <int groups>
  static void multiply_groups(int rows, int terms, Matrix<const float> w, const float* start, const V* x, V* y) {
    constexpr int most_rows = groups == 1 || kManyRegisters ? 8 : 4;
    for_row_tiles<most_rows>(rows, [&](auto tile_rows, int m) __attribute__((always_inline)) {
      Tile<tile_rows.value, groups> tile;
      CLOPS_UNROLL for (int p = 0; p < tile_rows.value; ++p) {
        const V value = start ? all(start[m + p]) : V{};
        CLOPS_UNROLL for (int q = 0; q < groups; ++q) tile.sum[p][q] = value;
      }
      tile.multiply(terms, {w(0, m), w.row, w.column}, {x, 1, terms});
      tile.store({y + m, 1, rows});
    });
  }

  // The gradient of weights is D X^T, summed over instances. Here lanes are features, and instances are terms.
  void add_products(const LayerPass& pass, const V* x, const V* d) const {
    constexpr int most = kManyRegisters ? 5 : 2;
    V* turned = pass.scratch;
    turn(x, turned);
    float* to = pass.gradient.sums + weight_;
    for_row_tiles<4>(shape.channels, [&](auto rows, int m) __attribute__((always_inline)) {
      int n = 0;
      for (; n + most <= vectors(); n += most) add_tile<rows.value, most>(turned, d, m, n, to);
      for (; n < vectors(); ++n) add_tile<rows.value, 1>(turned, d, m, n, to);
    });
  }

  template <int rows, int columns>
  CLOPS_INLINE void add_tile(const V* turned, const V* d, int m, int n, float* to) const {
    Tile<rows, columns> tile;
    tile.start(V{});
    tile.multiply(kLanes, {reinterpret_cast<const float*>(d + m), 1, kLanes}, {turned + n, vectors(), 1});
    CLOPS_UNROLL for (int p = 0; p < rows; ++p) CLOPS_UNROLL for (int q = 0; q < columns; ++q) {
      const int first = (n + q) * kLanes;
      float* at = to + static_cast<std::ptrdiff_t>(m + p) * features_ + first;
      if (first + kLanes <= features_) {
        store(at, load(at) + tile.sum[p][q]);
      } else {
        for (int l = 0; l < features_ - first; ++l) at[l] += tile.sum[p][q][l];
      }
    }
  }

  void add_products_of_each(const V* x, const V* d, V* to) const {
    for (int m = 0; m < shape.channels; ++m) {
      for (int f = 0; f < features_; ++f) *to++ += d[m] * x[f];
    }
  }

  // Vectors that hold the features of one instance.
  int vectors() const { return (features_ + kLanes - 1) / kLanes; }

  // Writes [lanes][vectors]: the features of each instance, followed by zeros.
  void turn(const V* x, V* to) const {
    for (int n = 0; n < vectors(); ++n) {
      V block[kLanes];
      CLOPS_UNROLL for (int l = 0; l < kLanes; ++l) block[l] = n * kLanes + l < features_ ? x[n * kLanes + l] : V{};
      transpose(block);
      CLOPS_UNROLL for (int l = 0; l < kLanes; ++l) to[l * vectors() + n] = block[l];
    }
  }

  Shape input_{};
  int features_ = 0;
  std::ptrdiff_t weight_ = 0, bias_ = -1;
};

}  // namespace clops::CLOPS_VARIANT
