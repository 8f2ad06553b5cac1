// Functions of each entry. To add one, write a struct with its value and its derivative, and enter it in the table.
#pragma once

#include "../functions.hpp"
#include "layer.hpp"

namespace clops::CLOPS_VARIANT {

// Every function has a value f(x, parameter) and a slope f'(x), from x, y = f(x) and the parameter.
struct Relu {
  static CLOPS_INLINE V value(V x, float) { return maximum(V{}, x); }
  static CLOPS_INLINE V slope(V, V y, float) { return y > 0.0f ? all(1.0f) : V{}; }
};
struct LeakyRelu {
  static CLOPS_INLINE V value(V x, float a) { return x > 0.0f ? x : x * a; }
  static CLOPS_INLINE V slope(V x, V, float a) { return x > 0.0f ? all(1.0f) : all(a); }
};
struct Elu {
  static CLOPS_INLINE V value(V x, float a) { return x > 0.0f ? x : exponential_minus_one(x) * a; }
  static CLOPS_INLINE V slope(V x, V y, float a) { return x > 0.0f ? all(1.0f) : y + a; }
};
struct Gelu {
  static CLOPS_INLINE V value(V x, float) { return x * normal_distribution(x); }
  static CLOPS_INLINE V slope(V x, V, float) { return normal_distribution(x) + x * normal_density(x); }
};
struct GeluTanh {  // x / 2 (1 + tanh(s (x + c x^3))), s = sqrt(2 / pi)
  static constexpr float s = 0.79788456f, c = 0.044715f;
  static CLOPS_INLINE V tangent(V x) { return hyperbolic_tangent(s * (x + c * x * x * x)); }
  static CLOPS_INLINE V value(V x, float) { return 0.5f * x * (1.0f + tangent(x)); }
  static CLOPS_INLINE V slope(V x, V, float) {
    const V t = tangent(x);
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * s * (1.0f + 3.0f * c * x * x);
  }
};
struct Silu {
  static CLOPS_INLINE V value(V x, float) { return x * sigmoid(x); }
  static CLOPS_INLINE V slope(V x, V y, float) {
    const V p = sigmoid(x);
    return p + y * (1.0f - p);
  }
};
struct Sigmoid {
  static CLOPS_INLINE V value(V x, float) { return sigmoid(x); }
  static CLOPS_INLINE V slope(V, V y, float) { return y * (1.0f - y); }
};
struct Tanh {
  static CLOPS_INLINE V value(V x, float) { return hyperbolic_tangent(x); }
  static CLOPS_INLINE V slope(V, V y, float) { return 1.0f - y * y; }
};
struct Square {
  static CLOPS_INLINE V value(V x, float) { return x * x; }
  static CLOPS_INLINE V slope(V x, V, float) { return x + x; }
};
struct SafeLog {  // log(max(x, least))
  static CLOPS_INLINE V value(V x, float least) { return logarithm(x < least ? all(least) : x); }
  static CLOPS_INLINE V slope(V x, V, float least) { return x < least ? V{} : 1.0f / x; }
};

using ActivationForward = void (*)(std::ptrdiff_t, float, const V*, V*);
using ActivationBackward = void (*)(std::ptrdiff_t, float, const V*, const V*, const V*, V*);

template <class F>
void activate(std::ptrdiff_t n, float parameter, const V* x, V* y) {
  for (std::ptrdiff_t i = 0; i < n; ++i) y[i] = F::value(x[i], parameter);
}
template <class F>
void differentiate_activation(std::ptrdiff_t n, float parameter, const V* x, const V* y, const V* by_y, V* by_x) {
  for (std::ptrdiff_t i = 0; i < n; ++i) by_x[i] = by_y[i] * F::slope(x[i], y[i], parameter);
}

struct NamedFunction {
  const char* name;
  ActivationForward forward;
  ActivationBackward backward;
};
template <class F>
constexpr NamedFunction function_named(const char* name) {
  return {name, activate<F>, differentiate_activation<F>};
}

constexpr NamedFunction kFunctions[] = {
    function_named<Relu>("relu"), function_named<LeakyRelu>("leaky_relu"), function_named<Elu>("elu"), function_named<Gelu>("gelu"),
    function_named<GeluTanh>("gelu_tanh"), function_named<Silu>("silu"), function_named<Sigmoid>("sigmoid"),
    function_named<Tanh>("tanh"), function_named<Square>("square"), function_named<SafeLog>("safe_log")};

class Activation final : public Layer {
 public:
  Activation(const Fields& fields, const Shapes& inputs) {
    shape = only(fields, inputs);
    parameter_ = static_cast<float>(fields.number("slope"));
    const char* name = fields.text("name");
    for (const NamedFunction& candidate : kFunctions) {
      if (std::strcmp(candidate.name, name) == 0) function_ = &candidate;
    }
    if (!function_) refuse("activation: %s is no function that the kernels know", name);
  }

  bool in_place() const override { return true; }

  bool is_relu() const { return function_->forward == activate<Relu>; }

  void forward(const LayerPass& pass, const Operands& of) override {
    function_->forward(shape.size_of_groups(pass.groups), parameter_, of.inputs[0], of.output);
  }

  void backward(const LayerPass& pass, const Operands& of) override {
    if (!of.by_inputs[0]) return;
    const std::ptrdiff_t n = shape.size_of_groups(pass.groups);
    function_->backward(n, parameter_, of.inputs[0], of.output, of.by_output, of.by_inputs[0]);
  }

 private:
  const NamedFunction* function_ = nullptr;
  float parameter_ = 0;
};

}  // namespace clops::CLOPS_VARIANT
