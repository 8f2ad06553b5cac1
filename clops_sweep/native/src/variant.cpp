// The kernels of one variant. The build compiles this file once for each instruction set, with
//
//   CLOPS_VARIANT   its name, which is also the namespace, so that no variant's code can stand in for another's;
//   CLOPS_LANES     floats in a vector.
#include "gradient.hpp"
#include "predict.hpp"

#define CLOPS_TEXT_OF(x) #x
#define CLOPS_TEXT(x) CLOPS_TEXT_OF(x)

namespace clops::CLOPS_VARIANT {

void adam(std::size_t n, float* __restrict values, float* __restrict first, float* __restrict second,
          const float* __restrict gradient, float rate, float root) {
  constexpr float first_share = static_cast<float>(1 - 0.9), second_decay = 0.999f,
                  second_share = static_cast<float>(1 - 0.999), epsilon = 1e-8f;
  // rate m / (sqrt(v) / root + epsilon) with one division
  const float rate_by_root = rate * root, epsilon_by_root = epsilon * root;
  for (std::size_t i = 0; i < n; ++i) {
    const float g = gradient[i];
    const float m = first[i] + first_share * (g - first[i]);
    const float v = second[i] * second_decay + second_share * g * g;
    first[i] = m;
    second[i] = v;
    values[i] -= rate_by_root * m / (sqrtf(v) + epsilon_by_root);
  }
}

extern const Kernels kernels;
const Kernels kernels = {CLOPS_TEXT(CLOPS_VARIANT), gradient_workspace, gradient, forward, backward, predict_workspace, predict, adam};

}  // namespace clops::CLOPS_VARIANT
