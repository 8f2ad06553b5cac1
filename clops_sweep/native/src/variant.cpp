// The kernels of one variant. The build compiles this file once for each instruction set, with
//
//   CLOPS_VARIANT   its name, also used as the namespace, so that the linker never mixes the code of variants;
//   CLOPS_LANES     floats in a vector.
#include "each.hpp"
#include "gradient.hpp"
#include "predict.hpp"

#define CLOPS_TEXT_OF(x) #x
#define CLOPS_TEXT(x) CLOPS_TEXT_OF(x)

namespace clops::CLOPS_VARIANT {

// Updates one entry's moments by the gradient, and returns rate m / (sqrt(v) / root + epsilon), with one division.
CLOPS_INLINE float adam_step(float& first, float& second, float gradient, float rate_by_root, float epsilon_by_root) {
  constexpr float first_share = static_cast<float>(1 - 0.9), second_decay = 0.999f, second_share = static_cast<float>(1 - 0.999);
  first = first + first_share * (gradient - first);
  second = second * second_decay + second_share * gradient * gradient;
  return rate_by_root * first / (sqrtf(second) + epsilon_by_root);
}

constexpr float kAdamEpsilon = 1e-8f;

void adam(std::size_t n, float* __restrict values, float* __restrict first, float* __restrict second,
          const float* __restrict gradient, float rate, float root) {
  const float rate_by_root = rate * root, epsilon_by_root = kAdamEpsilon * root;
  for (std::size_t i = 0; i < n; ++i) values[i] -= adam_step(first[i], second[i], gradient[i], rate_by_root, epsilon_by_root);
}

template <bool with_path>
void penalised(std::size_t n, float* __restrict values, float* __restrict first, float* __restrict second,
               const float* __restrict gradient, const float* __restrict importance, const float* __restrict centre,
               float* __restrict path, float rate, float root) {
  const float rate_by_root = rate * root, epsilon_by_root = kAdamEpsilon * root;
  for (std::size_t i = 0; i < n; ++i) {
    const float before = values[i], whole = gradient[i] + importance[i] * (before - centre[i]);
    const float after = before - adam_step(first[i], second[i], whole, rate_by_root, epsilon_by_root);
    values[i] = after;
    if constexpr (with_path) path[i] -= gradient[i] * (after - before);
  }
}

void penalised_adam(std::size_t n, float* values, float* first, float* second, const float* gradient, const Penalty& penalty,
                    float rate, float root) {
  const auto step = penalty.path ? penalised<true> : penalised<false>;
  step(n, values, first, second, gradient, penalty.importance, penalty.centre, penalty.path, rate, root);
}

extern const ProgramKernels programs;  // in program.cpp
extern const Kernels kernels;
const Kernels kernels = {CLOPS_TEXT(CLOPS_VARIANT), gradient_workspace, gradient, forward, backward, kLanes, sum_of_each,
                         differentiate, predict_workspace, predict, adam, penalised_adam, &programs};

}  // namespace clops::CLOPS_VARIANT
