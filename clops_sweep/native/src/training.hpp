// One epoch without returning to Python: weights, gradient, optimiser step and beta step of every batch.
//
// The computation is that of `Learner.train_epoch`; see there for the formulas. It works for any network: the caller
// says how a batch is differentiated.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels.hpp"

namespace clops {

// How a step follows a gradient g: `learning/learners/optimizers.py` has the formulas. `decay` is lambda.
struct Rule {
  enum class Kind { adam, adamw, sgd };
  Kind kind = Kind::adam;
  double decay = 0;
};

// An optimiser over vectors of n values, without a penalty if its importance is null.
class Optimizer {
 public:
  struct Vectors {
    std::size_t n;
    float *values, *first, *second;
    const float* gradient;
    Penalty penalty;
  };

  // After `steps` earlier steps.
  Optimizer(const Kernels& kernels, const Vectors& vectors, double learning_rate, std::int64_t steps, Rule rule = {})
      : kernels_(kernels), vectors_(vectors), learning_rate_(learning_rate), steps_(steps), rule_(rule) {}

  void step() { step(vectors_.gradient); }

  // One step along another gradient.
  void step(const float* gradient) {
    ++steps_;
    if (rule_.kind != Rule::Kind::sgd && rule_.decay == 0) {
      plain_adam(gradient);
    } else {
      step_by_rule(gradient);
    }
  }

 private:
  void plain_adam(const float* gradient) const {
    const auto [rate, root] = rates();
    const Vectors& v = vectors_;
    if (v.penalty.importance) {
      kernels_.penalised_adam(v.n, v.values, v.first, v.second, gradient, v.penalty, rate, root);
    } else {
      kernels_.adam(v.n, v.values, v.first, v.second, gradient, rate, root);
    }
  }

  void step_by_rule(const float* gradient) {
    const Vectors& v = vectors_;
    const Penalty& penalty = v.penalty;
    whole_.assign(gradient, gradient + v.n);
    if (penalty.importance) {
      for (std::size_t i = 0; i < v.n; ++i) whole_[i] += penalty.importance[i] * (v.values[i] - penalty.centre[i]);
    }
    if (penalty.path) before_.assign(v.values, v.values + v.n);
    decay();
    if (rule_.kind == Rule::Kind::sgd) {
      const auto rate = static_cast<float>(learning_rate_);
      for (std::size_t i = 0; i < v.n; ++i) v.values[i] -= rate * whole_[i];
    } else {
      const auto [rate, root] = rates();
      kernels_.adam(v.n, v.values, v.first, v.second, whole_.data(), rate, root);
    }
    if (!penalty.path) return;
    for (std::size_t i = 0; i < v.n; ++i) penalty.path[i] -= gradient[i] * (v.values[i] - before_[i]);
  }

  // Decay of the values themselves for adamw, otherwise in the gradient.
  void decay() {
    const Vectors& v = vectors_;
    if (rule_.kind == Rule::Kind::adamw) {
      const auto factor = static_cast<float>(1 - learning_rate_ * rule_.decay);
      for (std::size_t i = 0; i < v.n; ++i) v.values[i] *= factor;
    } else if (rule_.decay != 0) {
      const auto strength = static_cast<float>(rule_.decay);
      for (std::size_t i = 0; i < v.n; ++i) whole_[i] += strength * v.values[i];
    }
  }

  struct Rates {
    float rate, root;
  };

  Rates rates() const {
    const double t = static_cast<double>(steps_);
    const auto rate = static_cast<float>(learning_rate_ / (1 - std::pow(0.9, t)));
    const auto root = static_cast<float>(std::sqrt(1 - std::pow(0.999, t)));
    return {rate, root};
  }

  const Kernels& kernels_;
  const Vectors vectors_;
  const double learning_rate_;
  std::int64_t steps_;
  const Rule rule_;
  std::vector<float> whole_, before_;
};

// The epoch's instances in order, and the sizes of its batches.
struct Epoch {
  Frames frames;
  const std::int64_t* rows;   // [count][channels]
  int channels;
  const float* targets;       // [count][outputs]
  const float* factors;       // [count]
  const std::int64_t* order;  // [count], positions in the union; those below `task_size` belong to the current task
  std::vector<int> sizes;     // their sum is count
  int task_size;
};

// The task-instance parameters, with their optimiser; `values` is null without them.
struct Beta {
  float *values, *first, *second;  // [task_size]
  float penalty;
  double learning_rate;
  std::int64_t steps;
};

// Trains on all batches. `differentiate(batch, losses)` writes a batch's gradient to where `optimizer` reads it.
template <class Differentiate>
void train_epoch(const Kernels& kernels, const Epoch& epoch, int outputs, Beta beta, Optimizer& optimizer, Differentiate differentiate) {
  int largest = 0;
  for (const int size : epoch.sizes) largest = std::max(largest, size);
  const auto room = static_cast<std::size_t>(largest);
  std::vector<float> weights(room), losses(room), beta_gradient(beta.values ? static_cast<std::size_t>(epoch.task_size) : 0);
  std::vector<std::int64_t> draws(room);
  Optimizer beta_adam(kernels, {beta_gradient.size(), beta.values, beta.first, beta.second, beta_gradient.data(), {}}, beta.learning_rate, beta.steps);

  int start = 0;
  for (const int count : epoch.sizes) {
    const std::int64_t* order = epoch.order + start;
    const float* factors = epoch.factors + start;
    const auto is_current = [&](int i) { return order[i] < epoch.task_size; };
    int current = 0;
    for (int i = 0; i < count; ++i) current += is_current(i);
    const float current_share = 1.0f / static_cast<float>(current), replayed_share = 1.0f / static_cast<float>(count - current);
    for (int i = 0; i < count; ++i) {
      float weight = factors[i] * (is_current(i) ? current_share : replayed_share);
      if (beta.values && is_current(i)) weight *= beta.values[order[i]];
      weights[static_cast<std::size_t>(i)] = weight;
      draws[static_cast<std::size_t>(i)] = start + i;
    }
    Batch batch{};
    batch.instances.frames = epoch.frames;
    batch.instances.rows = epoch.rows + static_cast<std::ptrdiff_t>(start) * epoch.channels;
    batch.instances.count = count;
    batch.targets = epoch.targets + static_cast<std::ptrdiff_t>(start) * outputs;
    batch.weights = weights.data();
    batch.draws = draws.data();
    differentiate(batch, losses.data());
    optimizer.step();
    start += count;
    if (!beta.values) continue;
    for (int i = 0; i < count; ++i) {
      if (!is_current(i)) continue;
      const float pull = 2 * beta.penalty * (beta.values[order[i]] - 1);
      const float loss = factors[i] * losses[static_cast<std::size_t>(i)];
      beta_gradient[static_cast<std::size_t>(order[i])] = (loss + pull) / static_cast<float>(current);
    }
    beta_adam.step();
    for (int i = 0; i < count; ++i) {
      if (is_current(i)) beta_gradient[static_cast<std::size_t>(order[i])] = 0;
    }
  }
}

}  // namespace clops
