// One epoch of one run without returning to Python: weights, gradient, Adam step and beta step of every batch.
//
// The computation is that of `Learner.train_epoch`; see there for the formulas.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "layout.hpp"

namespace clops {

// Adam over a vector in pieces: several if runs are laid out parameter by parameter.
class Adam {
 public:
  Adam(const Kernels& kernels, double learning_rate, std::int64_t steps)
      : kernels_(kernels), learning_rate_(learning_rate), steps_(steps) {}

  // Without a penalty if its importance is null.
  void add(std::size_t n, float* values, float* first, float* second, const float* gradient, const Penalty& penalty = {}) {
    pieces_.push_back({n, values, first, second, gradient, penalty});
  }

  void step() {
    ++steps_;
    const double t = static_cast<double>(steps_);
    const auto rate = static_cast<float>(learning_rate_ / (1 - std::pow(0.9, t)));
    const auto root = static_cast<float>(std::sqrt(1 - std::pow(0.999, t)));
    for (const Piece& p : pieces_) {
      if (p.penalty.importance) {
        kernels_.penalised_adam(p.n, p.values, p.first, p.second, p.gradient, p.penalty, rate, root);
      } else {
        kernels_.adam(p.n, p.values, p.first, p.second, p.gradient, rate, root);
      }
    }
  }

 private:
  struct Piece {
    std::size_t n;
    float *values, *first, *second;
    const float* gradient;
    Penalty penalty;
  };

  const Kernels& kernels_;
  const double learning_rate_;
  std::int64_t steps_;
  std::vector<Piece> pieces_;
};

// The epoch's instances in order.
struct Epoch {
  const std::int64_t* rows;   // [count]
  const float* targets;       // [count][outputs]
  const float* factors;       // [count]
  const std::int64_t* order;  // [count], positions in the union; those below `task_size` belong to the current task
  int count, task_size, batch_size;
};

// The task-instance parameters of one run, with their optimiser; `values` is null without them.
struct Beta {
  float *values, *first, *second;  // [task_size]
  float penalty;
  double learning_rate;
  std::int64_t steps;
};

// Trains on all batches. `differentiate(batch, losses)` writes a batch's gradient to where `adam` reads it.
template <class Differentiate>
void train_epoch(const Kernels& kernels, const Epoch& epoch, int outputs, Beta beta, Adam& adam, Differentiate differentiate) {
  const auto size = static_cast<std::size_t>(std::min(epoch.batch_size, epoch.count));
  std::vector<float> weights(size), losses(size), beta_gradient(beta.values ? static_cast<std::size_t>(epoch.task_size) : 0);
  std::vector<std::int64_t> draws(size);
  Adam beta_adam(kernels, beta.learning_rate, beta.steps);
  if (beta.values) beta_adam.add(beta_gradient.size(), beta.values, beta.first, beta.second, beta_gradient.data());

  for (int start = 0; start < epoch.count; start += epoch.batch_size) {
    const int count = std::min(epoch.batch_size, epoch.count - start);
    const std::int64_t* order = epoch.order + start;
    const auto is_current = [&](int i) { return order[i] < epoch.task_size; };
    int current = 0;
    for (int i = 0; i < count; ++i) current += is_current(i);
    const float current_share = 1.0f / static_cast<float>(current), replayed_share = 1.0f / static_cast<float>(count - current);
    for (int i = 0; i < count; ++i) {
      float weight = epoch.factors[start + i] * (is_current(i) ? current_share : replayed_share);
      if (beta.values && is_current(i)) weight *= beta.values[order[i]];
      weights[static_cast<std::size_t>(i)] = weight;
      draws[static_cast<std::size_t>(i)] = start + i;
    }
    Batch batch{};
    batch.instances.rows = epoch.rows + start;
    batch.instances.count = count;
    batch.targets = epoch.targets + static_cast<std::ptrdiff_t>(start) * outputs;
    batch.weights = weights.data();
    batch.draws = draws.data();
    differentiate(batch, losses.data());
    adam.step();
    if (!beta.values) continue;
    for (int i = 0; i < count; ++i) {
      if (!is_current(i)) continue;
      const float pull = 2 * beta.penalty * (beta.values[order[i]] - 1);
      const float loss = epoch.factors[start + i] * losses[static_cast<std::size_t>(i)];
      beta_gradient[static_cast<std::size_t>(order[i])] = (loss + pull) / static_cast<float>(current);
    }
    beta_adam.step();
    for (int i = 0; i < count; ++i) {
      if (is_current(i)) beta_gradient[static_cast<std::size_t>(order[i])] = 0;
    }
  }
}

}  // namespace clops
