// The class that Python calls: it checks arguments and passes their memory to a variant's kernels.
#pragma once

#include <pybind11/stl.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>

#include "arrays.hpp"
#include "layout.hpp"
#include "stored_frames.hpp"
#include "training_arrays.hpp"
#include "variants.hpp"
#include "workspace.hpp"

namespace clops {

using KeyArray = Array<std::int32_t>;

// The paper's network: kernels over memory that Python owns. Calls release the interpreter's lock, but an object may be
// used by one thread at a time.
//
// Everywhere B are the instances of a call, C the outputs, P the parameters in one vector (see layout.hpp). Rows [B] are
// those of the data set, or of `frames` [n, 2500] if these are given.
class Core {
 public:
  Core(const std::string& name, bool softmax, int outputs, Floats parameters, Floats gradient, std::vector<Floats> means,
       std::vector<Floats> variances, const py::array& frames, std::optional<Floats> gain, std::optional<Floats> offset)
      : kernels_(variant(name)), loss_(softmax ? Loss::softmax : Loss::sigmoid), outputs_(outputs),
        parameters_(std::move(parameters)), gradient_(std::move(gradient)), means_(std::move(means)),
        variances_(std::move(variances)), frames_(frames, std::move(gain), std::move(offset), kFrameLength) {
    require(outputs > 0, "there must be an output");
    require_shape(parameters_, {parameter_count(outputs)}, "parameters");
    require_shape(gradient_, {parameter_count(outputs)}, "gradient");
    require(means_.size() == 3 && variances_.size() == 3, "there are three blocks of statistics");
    for (std::size_t b = 0; b < 3; ++b) {
      const auto channels = static_cast<std::size_t>(kChannels[b + 1]);
      require_shape(means_[b], {channels}, "running means");
      require_shape(variances_[b], {channels}, "running variances");
      running_.mean[b] = tracked_.mean[b] = means_[b].mutable_data();
      running_.variance[b] = tracked_.variance[b] = variances_[b].mutable_data();
    }
    network_ = network_of<const float>(parameters_.mutable_data(), outputs);
    by_network_ = network_of(gradient_.mutable_data(), outputs);
  }

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
    forward_half(instances, keys ? draws->data() : nullptr, {normalization(running), keys ? &stream : nullptr}, track, to);
  }

  // The backward half, from the gradient with respect to the logits of the last `forward`, [B, C]; written to
  // `gradient` [P] if given.
  void backward(const Floats& by_logits, std::optional<Floats> gradient) {
    check_by_logits(by_logits);
    if (gradient) require_shape(*gradient, {size_of_parameters()}, "gradient");
    const Network<float> to = gradient ? network_of(gradient->mutable_data(), outputs_) : by_network_;
    const py::gil_scoped_release release;
    backward_half(by_logits.data(), to);
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
    kernels_.differentiate(loss_, static_cast<int>(outputs), logits.data(), batch, losses.mutable_data(), by_logits.mutable_data(),
                           workspace_.of(64 * outputs));
  }

  // Adds to sums [P] the squares or absolute values of each instance's gradient, given the gradients with respect to
  // their logits, [B, C].
  void sum_of_each(const Longs& rows, const Floats& by_logits, bool absolute, Floats& sums) {
    const Instances instances = frames_.at(rows);
    require_shape(by_logits, {size_of(instances), size_of_outputs()}, "the gradient by the logits");
    require_shape(sums, {size_of_parameters()}, "sums");
    const Network<float> to = network_of(sums.mutable_data(), outputs_);
    const py::gil_scoped_release release;
    void* workspace = workspace_.of(kernels_.gradient_workspace(kernels_.lanes, outputs_));
    kernels_.sum_of_each(network_, outputs_, running_, instances, by_logits.data(), absolute ? Each::absolute : Each::square, to, workspace);
  }

  // Logits or probabilities in evaluation mode, [B, samples, C]; with keys, dropout is on. `noise` [B, 2500] is added to
  // the frames, and `parameters` [P] are used instead of the network's own.
  void predict(const Longs& rows, const std::optional<Floats>& noise, const std::optional<Floats>& parameters, bool probabilities,
               int samples, const std::optional<KeyArray>& keys, Floats& result, const std::optional<Floats>& frames) {
    Instances instances = frames_.at(rows, frames);
    const std::size_t count = size_of(instances);
    require(samples > 0, "there must be a sample");
    if (noise) {
      require_shape(*noise, {count, kFrameLength}, "noise");
      instances.noise = noise->data();
    }
    if (parameters) require_shape(*parameters, {size_of_parameters()}, "parameters");
    require_shape(result, {count, static_cast<std::size_t>(samples), size_of_outputs()}, "result");
    const auto network = parameters ? network_of(parameters->data(), outputs_) : network_;
    const Keys stream = keys ? keys_of(*keys) : Keys{};
    float* to = result.mutable_data();
    const py::gil_scoped_release release;
    kernels_.predict(network, outputs_, loss_, running_, instances, {keys.has_value(), probabilities, samples}, stream, to,
                     workspace_.of(kernels_.predict_workspace(outputs_)));
  }

  // One step of Adam along a gradient [P], with a penalty if given.
  void adam(AdamArrays adam, const Floats& gradient, const std::optional<PenaltyArrays>& penalty) const {
    require_shape(gradient, {size_of_parameters()}, "gradient");
    Adam optimizer = adam_of(kernels_, adam, gradient.data(), size_of_parameters(), penalty);
    const py::gil_scoped_release release;
    optimizer.step();
  }

  // Logits [places, C]; the places to read, the weight of the pull towards them, and the places to write, all [batches,
  // largest batch].
  using Table = std::tuple<Floats, Longs, Floats, Longs>;

  // Steps on batch after batch, of instances [all], for a loss computed in Python: `by_logits(number)` is called when
  // the batch's logits are in its array [B, C], and returns the gradient with respect to them.
  void train_by_logits(const Longs& rows, const KeyArray& keys, std::vector<Floats> logits, const py::function& by_logits, AdamArrays adam,
                       std::optional<Table> table) {
    Instances batch = frames_.at(rows);
    const std::vector<std::int64_t> draws = counters(rows.size());
    const Keys stream = keys_of(keys);
    Adam optimizer = adam_of(kernels_, adam, gradient_.data(), size_of_parameters());
    py::ssize_t start = 0;
    for (std::size_t number = 0; number < logits.size(); ++number) {
      Floats& own = logits[number];
      require(own.ndim() == 2 && own.shape(1) == outputs_, "logits are [instances, outputs]");
      require(start + own.shape(0) <= rows.size(), "batches are no longer than the epoch");
      batch.rows = rows.data() + start;
      batch.count = static_cast<int>(own.shape(0));
      float* to = own.mutable_data();
      {
        const py::gil_scoped_release release;
        forward_half(batch, draws.data() + start, {Normalization::batch, &stream}, true, to);
      }
      Floats by = floats(by_logits(number));
      check_by_logits(by);
      if (table) by = pulled(by, own, *table, static_cast<py::ssize_t>(number));
      const float* from = by.data();
      {
        const py::gil_scoped_release release;
        backward_half(from, by_network_);
        optimizer.step();
      }
      start += batch.count;
    }
  }

  // A batch of a memory for each step: rows [steps, m], targets [steps, m, C], weights and draws [steps, m], keys
  // [steps, 2].
  using MemoryArrays = std::tuple<Longs, Floats, Floats, Longs, KeyArray>;

  // Steps on batch after batch along a direction computed in Python: `direction()` is called when a batch's gradient
  // and the gradients of the memories with running statistics, [memories, P], are complete.
  void train_along(const Longs& rows, const Floats& targets, const Floats& weights, const std::vector<int>& sizes, const KeyArray& keys,
                   const std::vector<MemoryArrays>& memories, Array<double>& memory_gradients, const py::function& direction, AdamArrays adam) {
    Batch batch{frames_.at(rows), targets.data(), weights.data(), nullptr};
    const std::size_t count = size_of(batch.instances);
    require_shape(targets, {count, size_of_outputs()}, "targets");
    require_shape(weights, {count}, "weights");
    require(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}) == count, "the batches hold all instances");
    require_shape(memory_gradients, {memories.size(), size_of_parameters()}, "memory gradients");
    std::vector<MemoryBatch> past;
    for (const MemoryArrays& memory : memories) past.push_back(memory_of(memory, sizes.size()));
    const std::vector<std::int64_t> draws = counters(rows.size());
    const Keys stream = keys_of(keys);
    Adam optimizer = adam_of(kernels_, adam, nullptr, size_of_parameters());
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
      advance(batch, size);
    }
  }

  // A whole epoch: see training.hpp.
  void train_epoch(const Longs& rows, const Floats& targets, const Floats& factors, const Longs& order, const std::vector<int>& sizes,
                   int task_size, const KeyArray& keys, AdamArrays adam, const std::optional<PenaltyArrays>& penalty,
                   std::optional<AdamArrays> beta, float beta_penalty) {
    const Frames frames = frames_.at(rows).frames;
    const Epoch epoch = epoch_of(rows, targets, factors, order, sizes, task_size, outputs_);
    const Keys stream = keys_of(keys);
    Adam optimizer = adam_of(kernels_, adam, gradient_.data(), size_of_parameters(), penalty);
    const Beta betas = beta_of(beta, beta_penalty, task_size);
    const py::gil_scoped_release release;
    clops::train_epoch(kernels_, epoch, outputs_, betas, optimizer, [&](Batch& batch, float* losses) {
      batch.instances.frames = frames;
      differentiate(batch, stream, Normalization::batch, true, losses);
    });
  }

 private:
  // The batch of a memory in the current step.
  struct MemoryBatch {
    Batch batch;
    const std::int32_t* keys;
  };

  MemoryBatch memory_of(const MemoryArrays& arrays, std::size_t steps) const {
    const auto& [rows, targets, weights, draws, keys] = arrays;
    require(rows.ndim() == 2, "rows of a memory are [steps, instances]");
    const auto count = static_cast<std::size_t>(rows.shape(1));
    require_shape(rows, {steps, count}, "rows of a memory");
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
    const int count = memory.batch.instances.count;
    std::vector<float> losses(static_cast<std::size_t>(count));
    differentiate(memory.batch, keys_at(memory.keys), Normalization::running, false, losses.data());
    advance(memory.batch, count);
    memory.keys += 2;
    return std::copy_n(gradient_.data(), gradient_.size(), to);
  }

  // Moves a batch's pointers behind its instances.
  void advance(Batch& batch, int count) const {
    batch.instances.rows += count;
    batch.targets += static_cast<std::ptrdiff_t>(count) * outputs_;
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

  void differentiate(const Batch& batch, Keys keys, Normalization normalization, bool track, float* losses) {
    kernels_.gradient(network_, outputs_, loss_, normalization, running_, track ? &tracked_ : nullptr, batch, keys, by_network_, losses,
                      workspace_.of(kernels_.gradient_workspace(batch.instances.count, outputs_)));
  }

  void forward_half(const Instances& instances, const std::int64_t* draws, const Pass& pass, bool track, float* logits) {
    under_way_ = {instances.count, pass.normalization, pass.keys != nullptr};
    kernels_.forward(network_, outputs_, running_, track ? &tracked_ : nullptr, instances, draws, pass, logits,
                     half_.of(kernels_.gradient_workspace(instances.count, outputs_)));
  }

  // Python may have called other passes since the forward half.
  void check_by_logits(const Floats& by_logits) const {
    require(under_way_.count > 0, "a pass backward follows one forward");
    require_shape(by_logits, {static_cast<std::size_t>(under_way_.count), size_of_outputs()}, "the gradient by the logits");
  }

  void backward_half(const float* by_logits, const Network<float>& to) {
    const Keys any{};
    const Pass pass{under_way_.normalization, under_way_.dropout ? &any : nullptr};
    const int count = under_way_.count;
    under_way_.count = 0;
    kernels_.backward(network_, outputs_, count, pass, by_logits, to, half_.of(kernels_.gradient_workspace(count, outputs_)));
  }

  // 0, 1, ...: the counters of an epoch's dropout masks.
  static std::vector<std::int64_t> counters(py::ssize_t count) {
    std::vector<std::int64_t> result(static_cast<std::size_t>(count));
    std::iota(result.begin(), result.end(), std::int64_t{0});
    return result;
  }

  static Normalization normalization(bool running) { return running ? Normalization::running : Normalization::batch; }

  static Keys keys_of(const KeyArray& keys) {
    require_shape(keys, {2}, "keys");
    return keys_at(keys.data());
  }

  static Keys keys_at(const std::int32_t* keys) { return {static_cast<std::uint32_t>(keys[0]), static_cast<std::uint32_t>(keys[1])}; }

  static std::size_t size_of(const Instances& instances) { return static_cast<std::size_t>(instances.count); }
  std::size_t size_of_outputs() const { return static_cast<std::size_t>(outputs_); }
  std::size_t size_of_parameters() const { return static_cast<std::size_t>(parameters_.size()); }

  // A forward pass without its backward pass yet; `count` is 0 if there is no such pass.
  struct UnderWay {
    int count;
    Normalization normalization;
    bool dropout;
  };

  const Kernels& kernels_;
  const Loss loss_;
  const int outputs_;
  Floats parameters_, gradient_;
  std::vector<Floats> means_, variances_;
  StoredFrames frames_;
  Network<const float> network_{};
  Network<float> by_network_{};
  Statistics<const float> running_{};
  Statistics<float> tracked_{};  // the same memory
  Workspace workspace_;
  Workspace half_;  // between forward and backward; calls between them use workspace_
  UnderWay under_way_{};
};

}  // namespace clops
