// What Python calls to train a network, whichever kernels compute its passes.
#pragma once

#include <pybind11/stl.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>

#include "arrays.hpp"
#include "stored_frames.hpp"
#include "training_arrays.hpp"
#include "workspace.hpp"

namespace clops {

using KeyArray = Array<std::int32_t>;

// A network over memory that Python owns. Calls release the interpreter's lock, but an object may be used by one thread
// at a time.
//
// Everywhere B are the instances of a call, C the outputs, P the parameters in one vector. Rows [B * channels] are those
// of the data set, or of `frames` [n, samples] if these are given; the channels of an instance lie beside each other.
class Trainable {
 public:
  virtual ~Trainable() = default;

  // Losses [B], and the gradient of sum_i weights_i l_i.
  void gradient(const Longs& rows, const Floats& targets, const Floats& weights, const Longs& draws, const KeyArray& keys, bool running,
                bool track, Floats& losses, const std::optional<Floats>& frames) {
    const Batch batch{frames_.at(rows, frames), targets.data(), weights.data(), draws.data()};
    const std::size_t count = size_of(batch.instances);
    require_shape(targets, {count, size_of_outputs()}, "targets");
    require_shape(weights, {count}, "weights");
    require_shape(draws, {count}, "draws");
    require_shape(losses, {count}, "losses");
    const Keys stream = keys_of(keys);
    float* to = losses.mutable_data();
    const py::gil_scoped_release release;
    differentiate(batch, stream, normalization(running), track, to);
  }

  // The forward half of the gradient of any loss: computes logits [B, C].
  void forward(const Longs& rows, const std::optional<Longs>& draws, const std::optional<KeyArray>& keys, bool running, bool track,
               Floats& logits, const std::optional<Floats>& frames) {
    const Instances instances = frames_.at(rows, frames);
    const std::size_t count = size_of(instances);
    require(!keys || draws, "dropout keys come with draws");
    const Keys stream = keys ? keys_of(*keys) : Keys{};
    if (keys) require_shape(*draws, {count}, "draws");
    require_shape(logits, {count, size_of_outputs()}, "logits");
    float* to = logits.mutable_data();
    const py::gil_scoped_release release;
    begin(instances, keys ? draws->data() : nullptr, {normalization(running), keys ? &stream : nullptr}, track, to);
  }

  // The backward half, from the gradient with respect to the logits of the last `forward`, [B, C]; written to
  // `gradient` [P] if given.
  void backward(const Floats& by_logits, std::optional<Floats> gradient) {
    check_by_logits(by_logits);
    if (gradient) require_shape(*gradient, {size_of_parameters()}, "gradient");
    float* to = gradient ? gradient->mutable_data() : gradient_.mutable_data();
    const py::gil_scoped_release release;
    end(by_logits.data(), to);
  }

  // Losses [B], and the gradient of sum_i weights_i l_i with respect to the logits, [B, c], for any number of outputs c.
  void loss_by_logits(const Floats& logits, const Floats& targets, const Floats& weights, Floats& losses, Floats& by_logits) {
    require(logits.ndim() == 2, "logits are [instances, outputs]");
    const auto count = static_cast<std::size_t>(logits.shape(0)), outputs = static_cast<std::size_t>(logits.shape(1));
    require_shape(targets, {count, outputs}, "targets");
    require_shape(by_logits, {count, outputs}, "the gradient by the logits");
    require_shape(weights, {count}, "weights");
    require_shape(losses, {count}, "losses");
    Batch batch{};
    batch.instances.count = static_cast<int>(count);
    batch.targets = targets.data();
    batch.weights = weights.data();
    differentiate_loss(batch, static_cast<int>(outputs), logits.data(), losses.mutable_data(), by_logits.mutable_data());
  }

  // One step of the optimiser along a gradient [P], with a penalty if given.
  void step(OptimizerArrays arrays, const Floats& gradient, const std::optional<PenaltyArrays>& penalty) const {
    require_shape(gradient, {size_of_parameters()}, "gradient");
    Optimizer optimizer = optimizer_of(kernels_, arrays, gradient.data(), size_of_parameters(), penalty);
    const py::gil_scoped_release release;
    optimizer.step();
  }

  // Logits [places, C]; the places to read, the weight of the pull towards them, and the places to write, all [batches,
  // largest batch].
  using Table = std::tuple<Floats, Longs, Floats, Longs>;

  // Steps on batch after batch, of instances [all], for a loss computed in Python: `by_logits(number)` is called when
  // the batch's logits are in its array [B, C], and returns the gradient with respect to them.
  void train_by_logits(const Longs& rows, const KeyArray& keys, std::vector<Floats> logits, const py::function& by_logits, OptimizerArrays arrays,
                       std::optional<Table> table) {
    Batch batch{frames_.at(rows), nullptr, nullptr, nullptr};
    const int all = batch.instances.count;
    const std::vector<std::int64_t> draws = counters(all);
    const Keys stream = keys_of(keys);
    Optimizer optimizer = optimizer_of(kernels_, arrays, gradient_.data(), size_of_parameters());
    int start = 0;
    for (std::size_t number = 0; number < logits.size(); ++number) {
      Floats& own = logits[number];
      require(own.ndim() == 2 && own.shape(1) == outputs_, "logits are [instances, outputs]");
      require(own.shape(0) <= all - start, "batches are no longer than the epoch");
      const int count = batch.instances.count = static_cast<int>(own.shape(0));
      float* to = own.mutable_data();
      {
        const py::gil_scoped_release release;
        begin(batch.instances, draws.data() + start, {Normalization::batch, &stream}, true, to);
      }
      Floats by = floats(by_logits(number));
      check_by_logits(by);
      if (table) by = pulled(by, own, *table, static_cast<py::ssize_t>(number));
      const float* from = by.data();
      float* gradient = gradient_.mutable_data();
      {
        const py::gil_scoped_release release;
        end(from, gradient);
        optimizer.step();
      }
      batch.instances.rows += static_cast<std::ptrdiff_t>(count) * frames_.channels();
      start += count;
    }
  }

  // A batch of a memory for each step: rows [steps, m * channels], targets [steps, m, C], weights and draws [steps, m],
  // keys [steps, 2].
  using MemoryArrays = std::tuple<Longs, Floats, Floats, Longs, KeyArray>;

  // Steps on batch after batch along a direction computed in Python: `direction()` is called when a batch's gradient
  // and the gradients of the memories with running statistics, [memories, P], are complete.
  void train_along(const Longs& rows, const Floats& targets, const Floats& weights, const std::vector<int>& sizes, const KeyArray& keys,
                   const std::vector<MemoryArrays>& memories, Array<double>& memory_gradients, const py::function& direction, OptimizerArrays arrays) {
    Batch batch{frames_.at(rows), targets.data(), weights.data(), nullptr};
    const std::size_t count = size_of(batch.instances);
    require_shape(targets, {count, size_of_outputs()}, "targets");
    require_shape(weights, {count}, "weights");
    require(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}) == count, "the batches hold all instances");
    require_shape(memory_gradients, {memories.size(), size_of_parameters()}, "memory gradients");
    std::vector<MemoryBatch> past;
    for (const MemoryArrays& memory : memories) past.push_back(memory_of(memory, sizes.size()));
    const std::vector<std::int64_t> draws = counters(batch.instances.count);
    const Keys stream = keys_of(keys);
    Optimizer optimizer = optimizer_of(kernels_, arrays, nullptr, size_of_parameters());
    double* const to = memory_gradients.mutable_data();
    std::vector<float> losses(count);
    batch.draws = draws.data();
    for (const int size : sizes) {
      batch.instances.count = size;
      {
        const py::gil_scoped_release release;
        double* next = to;
        for (MemoryBatch& memory : past) {
          next = differentiate_memory(memory, next);
        }
        differentiate(batch, stream, Normalization::batch, true, losses.data());
      }
      const Floats along = floats(direction());
      require_shape(along, {size_of_parameters()}, "a direction");
      const float* gradient = along.data();
      {
        const py::gil_scoped_release release;
        optimizer.step(gradient);
      }
      advance(batch);
    }
  }

  // A whole epoch: see training.hpp.
  void train_epoch(const Longs& rows, const Floats& targets, const Floats& factors, const Longs& order, const std::vector<int>& sizes,
                   int task_size, const KeyArray& keys, OptimizerArrays arrays, const std::optional<PenaltyArrays>& penalty,
                   std::optional<OptimizerArrays> beta, float beta_penalty) {
    const Epoch epoch = epoch_of(frames_.at(rows), frames_.channels(), targets, factors, order, sizes, task_size, outputs_);
    const Keys stream = keys_of(keys);
    Optimizer optimizer = optimizer_of(kernels_, arrays, gradient_.data(), size_of_parameters(), penalty);
    const Beta betas = beta_of(beta, beta_penalty, task_size);
    const py::gil_scoped_release release;
    clops::train_epoch(kernels_, epoch, outputs_, betas, optimizer, [&](const Batch& batch, float* losses) {
      differentiate(batch, stream, Normalization::batch, true, losses);
    });
  }

 protected:
  Trainable(const Kernels& kernels, bool softmax, int outputs, Floats parameters, Floats gradient, StoredFrames frames)
      : kernels_(kernels), loss_(softmax ? Loss::softmax : Loss::sigmoid), outputs_(outputs), parameters_(std::move(parameters)),
        gradient_(std::move(gradient)), frames_(std::move(frames)) {
    require(outputs > 0, "there must be an output");
    require(parameters_.ndim() == 1, "parameters are a vector");
    require_shape(gradient_, {size_of_parameters()}, "gradient");
    parameters_.mutable_data();
    gradient_.mutable_data();  // both throw for an array that nobody may write to
  }

  // The halves of a pass: logits [B, C], then the gradient [P], from that with respect to the logits. Other passes may
  // come between the two, but parameters do not change.
  virtual void forward_half(const Instances& instances, const std::int64_t* draws, const Pass& pass, bool track, float* logits) = 0;
  virtual void backward_half(int count, const Pass& pass, const float* by_logits, float* gradient) = 0;

  // Losses [B], and the gradient of sum_i weights_i l_i in the network's own vector.
  virtual void differentiate(const Batch& batch, Keys keys, Normalization normalization, bool track, float* losses) = 0;

  // As `loss_by_logits`.
  void differentiate_loss(const Batch& batch, int outputs, const float* logits, float* losses, float* by_logits) {
    void* workspace = loss_workspace_.of(64 * static_cast<std::size_t>(outputs));
    kernels_.differentiate(loss_, outputs, logits, batch, losses, by_logits, workspace);
  }

  // Makes an end to a pass whose backward half is to come.
  void interrupt() { under_way_.count = 0; }

  static Keys keys_of(const KeyArray& keys) {
    require_shape(keys, {2}, "keys");
    return keys_at(keys.data());
  }

  static std::size_t size_of(const Instances& instances) { return static_cast<std::size_t>(instances.count); }
  std::size_t size_of_outputs() const { return static_cast<std::size_t>(outputs_); }
  std::size_t size_of_parameters() const { return static_cast<std::size_t>(parameters_.size()); }

  const Kernels& kernels_;
  const Loss loss_;
  const int outputs_;
  Floats parameters_, gradient_;
  const StoredFrames frames_;

 private:
  // A forward pass without its backward pass yet; `count` is 0 if there is no such pass.
  struct UnderWay {
    int count;
    Normalization normalization;
    bool dropout;
  };

  void begin(const Instances& instances, const std::int64_t* draws, const Pass& pass, bool track, float* logits) {
    under_way_ = {instances.count, pass.normalization, pass.keys != nullptr};
    forward_half(instances, draws, pass, track, logits);
  }

  void end(const float* by_logits, float* gradient) {
    const Keys any{};
    const Pass pass{under_way_.normalization, under_way_.dropout ? &any : nullptr};
    const int count = under_way_.count;
    under_way_.count = 0;
    backward_half(count, pass, by_logits, gradient);
  }

  // Python may have called other passes since the forward half.
  void check_by_logits(const Floats& by_logits) const {
    require(under_way_.count > 0, "a pass backward follows one forward");
    require_shape(by_logits, {static_cast<std::size_t>(under_way_.count), size_of_outputs()}, "the gradient by the logits");
  }

  // The batch of a memory in the current step.
  struct MemoryBatch {
    Batch batch;
    const std::int32_t* keys;
  };

  MemoryBatch memory_of(const MemoryArrays& arrays, std::size_t steps) const {
    const auto& [rows, targets, weights, draws, keys] = arrays;
    require(targets.ndim() == 3, "targets of a memory are [steps, instances, outputs]");
    const auto count = static_cast<std::size_t>(targets.shape(1));
    require_shape(rows, {steps, count * static_cast<std::size_t>(frames_.channels())}, "rows of a memory");
    require_shape(targets, {steps, count, size_of_outputs()}, "targets of a memory");
    require_shape(weights, {steps, count}, "weights of a memory");
    require_shape(draws, {steps, count}, "draws of a memory");
    require_shape(keys, {steps, 2}, "keys of a memory");
    Batch batch{frames_.among(rows), targets.data(), weights.data(), draws.data()};
    batch.instances.count = static_cast<int>(count);
    return {batch, keys.data()};
  }

  // Writes the gradient of the memory's batch to `to` [P] and advances to the next step. Returns the end of `to`.
  double* differentiate_memory(MemoryBatch& memory, double* to) {
    std::vector<float> losses(size_of(memory.batch.instances));
    differentiate(memory.batch, keys_at(memory.keys), Normalization::running, false, losses.data());
    advance(memory.batch);
    memory.keys += 2;
    return std::copy_n(gradient_.data(), gradient_.size(), to);
  }

  // Moves a batch's pointers behind its instances.
  void advance(Batch& batch) const {
    const std::ptrdiff_t count = batch.instances.count;
    batch.instances.rows += count * frames_.channels();
    batch.targets += count * outputs_;
    batch.weights += count;
    batch.draws += count;
  }

  // The gradient with respect to a batch's logits plus that of the pull to the table; then the logits are written to
  // the table.
  Floats pulled(const Floats& by, const Floats& logits, Table& table, py::ssize_t number) const {
    auto& [values, read, pull, written] = table;
    const py::ssize_t count = logits.shape(0);
    require(by.shape(0) == count, "the gradient by the logits does not have the expected shape");
    const auto has_all = [&](const auto& kept) { return kept.ndim() == 2 && number < kept.shape(0) && count <= kept.shape(1); };
    require(values.ndim() == 2 && values.shape(1) == outputs_, "a table of logits is [places, outputs]");
    require(has_all(read) && has_all(pull) && has_all(written), "every instance has a place to read, one to write, and a pull");
    float* const there = values.mutable_data();
    const py::ssize_t end = values.shape(0);  // Clang before 16 cannot capture `values` in a lambda
    const auto at_place = [&](const Longs& places, py::ssize_t i) {
      const std::int64_t place = *places.data(number, i);
      require(place >= 0 && place < end, "a place is not in the table");
      return there + place * outputs_;
    };
    Floats result({count, static_cast<py::ssize_t>(outputs_)});
    float* to = result.mutable_data();
    for (py::ssize_t i = 0; i < count; ++i) {
      const float *other = at_place(read, i), *own = logits.data() + i * outputs_, *from = by.data() + i * outputs_;
      for (int c = 0; c < outputs_; ++c) *to++ = from[c] + *pull.data(number, i) * (own[c] - other[c]);
    }
    for (py::ssize_t i = 0; i < count; ++i) std::copy_n(logits.data() + i * outputs_, outputs_, at_place(written, i));
    return result;
  }

  // 0, 1, ...: the counters of an epoch's dropout masks.
  static std::vector<std::int64_t> counters(int count) {
    std::vector<std::int64_t> result(static_cast<std::size_t>(count));
    std::iota(result.begin(), result.end(), std::int64_t{0});
    return result;
  }

  static Normalization normalization(bool running) { return running ? Normalization::running : Normalization::batch; }

  static Keys keys_at(const std::int32_t* keys) { return {static_cast<std::uint32_t>(keys[0]), static_cast<std::uint32_t>(keys[1])}; }

  Workspace loss_workspace_;
  UnderWay under_way_{};
};

}  // namespace clops
