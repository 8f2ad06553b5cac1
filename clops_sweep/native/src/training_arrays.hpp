// Python's arrays of a training epoch, checked, in the form that training.hpp takes.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "training.hpp"

namespace clops {

// Values, first and second moments, the learning rate of the next steps, the number of steps before them, the name of
// the rule (adam, adamw or sgd) and its decay.
using OptimizerArrays = std::tuple<Floats, Floats, Floats, double, std::int64_t, std::string, double>;

// A penalty's importance, centre and optional path, laid out like the values.
using PenaltyArrays = std::tuple<Floats, Floats, std::optional<Floats>>;

inline Rule rule_of(const std::string& name, double decay) {
  if (name == "adam") return {Rule::Kind::adam, decay};
  if (name == "adamw") return {Rule::Kind::adamw, decay};
  require(name == "sgd", "an optimiser is adam, adamw or sgd");
  return {Rule::Kind::sgd, decay};
}

inline Optimizer optimizer_of(const Kernels& kernels, OptimizerArrays& arrays, const float* gradient, std::size_t size,
                              std::optional<PenaltyArrays> penalty = std::nullopt) {
  auto& [values, first, second, learning_rate, steps, name, decay] = arrays;
  for (const Floats* vector : {&values, &first, &second}) require_shape(*vector, {size}, "a vector of the optimiser");
  Optimizer::Vectors vectors{size, values.mutable_data(), first.mutable_data(), second.mutable_data(), gradient, {}};
  if (penalty) {
    auto& [importance, centre, path] = *penalty;
    const auto fits = [&](const Floats& vector) { return static_cast<std::size_t>(vector.size()) == size; };
    require(fits(importance) && fits(centre) && (!path || fits(*path)), "a penalty needs vectors of equal size");
    vectors.penalty = {importance.data(), centre.data(), path ? path->mutable_data() : nullptr};
  }
  return Optimizer(kernels, vectors, learning_rate, steps, rule_of(name, decay));
}

// `penalty` is lambda.
inline Beta beta_of(std::optional<OptimizerArrays>& arrays, float penalty, int task_size) {
  if (!arrays) return {};
  auto& [values, first, second, learning_rate, steps, name, decay] = *arrays;
  require(name == "adam" && decay == 0, "beta is trained by Adam without decay");
  for (const Floats* vector : {&values, &first, &second}) require_shape(*vector, {static_cast<std::size_t>(task_size)}, "beta");
  return {values.mutable_data(), first.mutable_data(), second.mutable_data(), penalty, learning_rate, steps};
}

inline Epoch epoch_of(const Instances& instances, int channels, const Floats& targets, const Floats& factors, const Longs& order,
                      const std::vector<int>& sizes, int task_size, int outputs) {
  const auto count = static_cast<std::size_t>(instances.count);
  require_shape(targets, {count, static_cast<std::size_t>(outputs)}, "targets");
  require_shape(factors, {count}, "factors");
  require_shape(order, {count}, "order");
  const auto in_union = [&](std::int64_t position) { return position >= 0 && position < order.size(); };
  require(std::all_of(order.data(), order.data() + order.size(), in_union), "order is no permutation");
  require(task_size >= 0 && task_size <= instances.count, "there are no more current instances than all");
  std::size_t total = 0;
  for (const int size : sizes) {
    require(size > 0, "a batch is not empty");
    total += static_cast<std::size_t>(size);
  }
  require(total == count, "the batches hold all instances");
  return {instances.frames, instances.rows, channels, targets.data(), factors.data(), order.data(), sizes, task_size};
}

}  // namespace clops
