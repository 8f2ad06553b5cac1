// Python's arrays of a training epoch, checked, in the form that training.hpp takes.
#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "training.hpp"

namespace clops {

// Values, first and second moments, the learning rate of the next steps, and the number of steps before them.
using AdamArrays = std::tuple<Floats, Floats, Floats, double, std::int64_t>;

// A penalty's importance, centre and optional path, laid out like the values.
using PenaltyArrays = std::tuple<Floats, Floats, std::optional<Floats>>;

inline Adam adam_of(const Kernels& kernels, AdamArrays& arrays, const float* gradient, std::size_t size,
                    std::optional<PenaltyArrays> penalty = std::nullopt) {
  auto& [values, first, second, learning_rate, steps] = arrays;
  for (const Floats* vector : {&values, &first, &second}) require_shape(*vector, {size}, "a vector of Adam");
  Adam::Vectors vectors{size, values.mutable_data(), first.mutable_data(), second.mutable_data(), gradient, {}};
  if (penalty) {
    auto& [importance, centre, path] = *penalty;
    const auto fits = [&](const Floats& vector) { return static_cast<std::size_t>(vector.size()) == size; };
    require(fits(importance) && fits(centre) && (!path || fits(*path)), "a penalty needs vectors of equal size");
    vectors.penalty = {importance.data(), centre.data(), path ? path->mutable_data() : nullptr};
  }
  return Adam(kernels, vectors, learning_rate, steps);
}

// `penalty` is lambda.
inline Beta beta_of(std::optional<AdamArrays>& arrays, float penalty, int task_size) {
  if (!arrays) return {};
  auto& [values, first, second, learning_rate, steps] = *arrays;
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
