// The class that Python calls: it checks arguments and passes their memory to a variant's kernels.
#pragma once

#include <pybind11/stl.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <tuple>

#include "arrays.hpp"
#include "training.hpp"
#include "variants.hpp"

namespace clops {

// Memory for a kernel's intermediate results, reused from call to call.
class Workspace {
 public:
  void* of(std::size_t bytes) {
    if (bytes > size_) {
      size_ = (bytes + 63) / 64 * 64;
      memory_.reset(std::aligned_alloc(64, size_));
      if (!memory_) throw std::bad_alloc();
    }
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  std::size_t size_ = 0;
};

inline const Kernels& variant(const std::string& name) {
  for (const Kernels* kernels : runnable_kernels()) {
    if (name == kernels->name) return *kernels;
  }
  throw std::invalid_argument("this CPU cannot run the kernels '" + name + "'");
}

// The networks of S runs: kernels over memory that Python owns. Runs are computed one after another. Calls release the
// interpreter's lock, but an object may be used by one thread at a time.
class Core {
 public:
  Core(const std::string& name, bool softmax, int runs, int outputs, Floats parameters, Floats gradient,
       std::vector<Floats> means, std::vector<Floats> variances, const py::array& frames, std::optional<Floats> gain,
       std::optional<Floats> offset)
      : kernels_(variant(name)), loss_(softmax ? Loss::softmax : Loss::sigmoid), runs_(runs), outputs_(outputs),
        parameters_(std::move(parameters)), gradient_(std::move(gradient)), means_(std::move(means)),
        variances_(std::move(variances)), stored_(frames), gain_(std::move(gain)), offset_(std::move(offset)) {
    require(runs > 0 && outputs > 0, "there must be a run and an output");
    const std::size_t size = static_cast<std::size_t>(runs) * parameter_count(outputs);
    require_shape(parameters_, {size}, "parameters");
    require_shape(gradient_, {size}, "gradient");
    require(means_.size() == 3 && variances_.size() == 3, "there are three blocks of statistics");
    for (std::size_t b = 0; b < 3; ++b) {
      const auto channels = static_cast<std::size_t>(runs * kChannels[b + 1]);
      require_shape(means_[b], {channels}, "running means");
      require_shape(variances_[b], {channels}, "running variances");
      tracked_.push_back({means_[b].mutable_data(), variances_[b].mutable_data()});
    }
    gradient_data_ = gradient_.mutable_data();
    require(stored_.ndim() == 2 && static_cast<std::size_t>(stored_.shape(1)) == kFrameLength, "frames must be [n, 2500]");
    frame_count_ = stored_.shape(0);
    require(gain_.has_value() == offset_.has_value(), "gain and offset go together");
    if (gain_) {
      require_shape(*gain_, {static_cast<std::size_t>(frame_count_)}, "gain");
      require_shape(*offset_, {static_cast<std::size_t>(frame_count_)}, "offset");
      frames_.gain = gain_->data();
      frames_.offset = offset_->data();
    }
    if (Array<float>::check_(stored_)) {
      frames_.floats = static_cast<const float*>(stored_.data());
    } else if (Array<std::int16_t>::check_(stored_)) {
      frames_.integers = static_cast<const std::int16_t*>(stored_.data());
    } else {
      throw std::invalid_argument("frames must be contiguous, float32 or int16");
    }
  }

  void gradient(const Longs& rows, const Floats& targets, const Floats& weights, const Longs& draws,
                const Array<std::int32_t>& keys, bool running, bool track, Floats& losses, const std::optional<Floats>& frames) {
    const int count = check_batch(rows, targets, weights, draws, keys, frames);
    const Frames of = frames_of(frames);
    require_shape(losses, {static_cast<std::size_t>(runs_), static_cast<std::size_t>(count)}, "losses");
    float* losses_at = losses.mutable_data();
    const py::gil_scoped_release release;
    for (int run = 0; run < runs_; ++run) {
      differentiate(run, batch_of(of, run, count, rows, targets, weights, draws), keys_of(keys, run),
                    running ? Normalization::running : Normalization::batch, track, losses_at + static_cast<std::ptrdiff_t>(run) * count);
    }
  }

  // Rows, targets, weights, draws and keys of a batch, as in `gradient`.
  using BatchArrays = std::tuple<Longs, Floats, Floats, Longs, Array<std::int32_t>>;

  // The gradients of J batches with running statistics, as rows of [S, J, parameters].
  void gradients(const std::vector<BatchArrays>& batches, Array<double>& result) {
    const std::size_t size = parameter_count(outputs_);
    require_shape(result, {static_cast<std::size_t>(runs_), batches.size(), size}, "gradients");
    std::vector<int> counts;
    for (const auto& batch : batches) counts.push_back(std::apply([&](const auto&... parts) { return check_batch(parts..., std::nullopt); }, batch));
    double* to = result.mutable_data();
    const auto sizes = parameter_sizes(outputs_);
    const py::gil_scoped_release release;
    std::vector<float> losses;
    for (int run = 0; run < runs_; ++run) {
      const auto found = parameters_of(gradient_data_, runs_, run, outputs_);
      for (std::size_t j = 0; j < batches.size(); ++j) {
        const auto& [rows, targets, weights, draws, keys] = batches[j];
        losses.resize(static_cast<std::size_t>(counts[j]));
        differentiate(run, batch_of(frames_, run, counts[j], rows, targets, weights, draws), keys_of(keys, run), Normalization::running, false, losses.data());
        for (std::size_t i = 0; i < sizes.size(); ++i) to = std::copy_n(found[i], sizes[i], to);
      }
    }
  }

  // The forward half of the gradient of any loss: computes logits [S, count, outputs]. Rows refer to `frames` if given.
  void forward(const Longs& rows, const std::optional<Longs>& draws, const std::optional<Array<std::int32_t>>& keys, bool running,
               bool track, Floats& logits, const std::optional<Floats>& frames) {
    const int count = check_rows(rows, frames);
    const Frames of = frames_of(frames);
    const auto runs = static_cast<std::size_t>(runs_), size = static_cast<std::size_t>(count);
    require(!keys || draws, "dropout keys come with draws");
    if (keys) require_shape(*keys, {runs, 2}, "keys");
    if (keys) require_shape(*draws, {size}, "draws");
    require_shape(logits, {runs, size, static_cast<std::size_t>(outputs_)}, "logits");
    under_way_ = {count, running ? Normalization::running : Normalization::batch, keys.has_value()};
    halves_.resize(runs);
    float* to = logits.mutable_data();
    const py::gil_scoped_release release;
    for (int run = 0; run < runs_; ++run) {
      const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(run) * count;
      const Keys of_run = keys ? keys_of(*keys, run) : Keys{};
      const Statistics<float> tracked = tracked_of(run);
      kernels_.forward(network_of(parameters_.data(), runs_, run, outputs_), outputs_, statistics_of(run), track ? &tracked : nullptr,
                       {of, rows.data() + first, nullptr, count}, keys ? draws->data() : nullptr,
                       {under_way_.normalization, keys ? &of_run : nullptr}, to + first * outputs_,
                       halves_[static_cast<std::size_t>(run)].of(kernels_.gradient_workspace(count, outputs_)));
    }
  }

  // The backward half, from the gradient with respect to the logits of the last `forward`; written to `gradient` if
  // given.
  void backward(const Floats& by_logits, std::optional<Floats> gradient) {
    require(under_way_.count > 0, "a pass backward follows one forward");
    const int count = under_way_.count;
    require_shape(by_logits, {static_cast<std::size_t>(runs_), static_cast<std::size_t>(count), static_cast<std::size_t>(outputs_)},
                  "the gradient by the logits");
    if (gradient) require_shape(*gradient, {static_cast<std::size_t>(parameters_.size())}, "gradient");
    float* to = gradient ? gradient->mutable_data() : gradient_data_;
    under_way_.count = 0;
    const Keys any{};
    const Pass pass{under_way_.normalization, under_way_.dropout ? &any : nullptr};
    const py::gil_scoped_release release;
    for (int run = 0; run < runs_; ++run) {
      kernels_.backward(network_of(parameters_.data(), runs_, run, outputs_), outputs_, count, pass,
                        by_logits.data() + static_cast<std::ptrdiff_t>(run) * count * outputs_,
                        network_of(to, runs_, run, outputs_),
                        halves_[static_cast<std::size_t>(run)].of(kernels_.gradient_workspace(count, outputs_)));
    }
  }

  // Losses [count], and the gradient of sum_i weights_i l_i with respect to the logits [count, outputs], for any number
  // of outputs.
  void loss_by_logits(const Floats& logits, const Floats& targets, const Floats& weights, Floats& losses, Floats& by_logits) {
    require(logits.ndim() == 2, "logits are [instances, outputs]");
    const auto count = static_cast<std::size_t>(logits.shape(0)), outputs = static_cast<std::size_t>(logits.shape(1));
    require_shape(targets, {count, outputs}, "targets");
    require_shape(by_logits, {count, outputs}, "the gradient by the logits");
    require_shape(weights, {count}, "weights");
    require_shape(losses, {count}, "losses");
    Batch batch{};
    batch.instances.count = static_cast<int>(count);
    batch.targets = targets.data(), batch.weights = weights.data();
    kernels_.differentiate(loss_, static_cast<int>(outputs), logits.data(), batch, losses.mutable_data(), by_logits.mutable_data(),
                           workspace_.of(64 * outputs));
  }

  // Sums over instances of the squares or absolute values of their gradients, given the gradients with respect to their
  // logits.
  void sum_of_each(const Longs& rows, const Floats& by_logits, bool absolute, Floats& sums) {
    const int count = check_rows(rows);
    const auto runs = static_cast<std::size_t>(runs_), size = static_cast<std::size_t>(count);
    require_shape(by_logits, {runs, size, static_cast<std::size_t>(outputs_)}, "the gradient by the logits");
    require_shape(sums, {static_cast<std::size_t>(parameters_.size())}, "sums");
    float* to = sums.mutable_data();
    const py::gil_scoped_release release;
    void* workspace = workspace_.of(kernels_.gradient_workspace(kernels_.lanes, outputs_));
    for (int run = 0; run < runs_; ++run) {
      const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(run) * count;
      kernels_.sum_of_each(network_of(parameters_.data(), runs_, run, outputs_), outputs_, statistics_of(run),
                           {frames_, rows.data() + first, nullptr, count}, by_logits.data() + first * outputs_,
                           absolute ? Each::absolute : Each::square, network_of(to, runs_, run, outputs_), workspace);
    }
  }

  void predict(const Longs& rows, const std::optional<Floats>& noise, const std::optional<Floats>& parameters, bool probabilities,
               int samples, const std::optional<Array<std::int32_t>>& keys, Floats& result, const std::optional<Floats>& frames) {
    const int count = check_rows(rows, frames);
    const Frames of = frames_of(frames);
    const auto runs = static_cast<std::size_t>(runs_), size = static_cast<std::size_t>(count);
    require(samples > 0, "there must be a sample");
    if (noise) require_shape(*noise, {runs, size, kFrameLength}, "noise");
    if (parameters) require_shape(*parameters, {static_cast<std::size_t>(parameters_.size())}, "parameters");
    if (keys) require_shape(*keys, {runs, 2}, "keys");
    require_shape(result, {runs, size, static_cast<std::size_t>(samples), static_cast<std::size_t>(outputs_)}, "result");
    const float* flat = parameters ? parameters->data() : parameters_.data();
    float* to = result.mutable_data();
    const py::gil_scoped_release release;
    void* workspace = workspace_.of(kernels_.predict_workspace(outputs_));
    for (int run = 0; run < runs_; ++run) {
      const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(run) * count;
      const auto frame_length = static_cast<std::ptrdiff_t>(kFrameLength);
      const Instances instances{of, rows.data() + first, noise ? noise->data() + first * frame_length : nullptr, count};
      kernels_.predict(network_of(flat, runs_, run, outputs_), outputs_, loss_, statistics_of(run), instances,
                       {keys.has_value(), probabilities, samples}, keys ? keys_of(*keys, run) : Keys{}, to + first * samples * outputs_,
                       workspace);
    }
  }

  // A penalty's importance, centre and optional path, laid out like the parameters.
  using PenaltyArrays = std::tuple<Floats, Floats, std::optional<Floats>>;

  // One Adam step of a vector, after `steps` earlier ones, with a penalty if given.
  void adam(Floats& values, Floats& first, Floats& second, const Floats& gradient, double learning_rate, std::int64_t steps,
            std::optional<PenaltyArrays> penalty) const {
    const auto fits = [&](const auto& vector) { return vector.size() == values.size(); };
    require(fits(first) && fits(second) && fits(gradient), "Adam needs vectors of equal size");
    Adam optimizer(kernels_, learning_rate, steps);
    optimizer.add(static_cast<std::size_t>(values.size()), values.mutable_data(), first.mutable_data(), second.mutable_data(), gradient.data(),
                  penalty_of(penalty, values.size()));
    const py::gil_scoped_release release;
    optimizer.step();
  }

  // Logits [places, outputs]; the places to read, the weight of the pull towards them, and the places to write, all
  // [batches, S * largest].
  using Table = std::tuple<Floats, Longs, Floats, Longs>;

  // Steps on batch after batch, of instances [S, all], for a loss computed in Python: `by_logits(number)` is called
  // when the batch's logits are in its array, and returns the gradient with respect to them.
  void train_by_logits(const Longs& rows, const Array<std::int32_t>& keys, std::vector<Floats> logits, const py::function& by_logits,
                       Floats& values, Floats& first, Floats& second, double learning_rate, std::int64_t steps, std::optional<Table> table) {
    py::ssize_t start = 0;
    for (std::size_t number = 0; number < logits.size(); ++number) {
      Floats& own = logits[number];
      require(own.ndim() == 3, "logits are [S, instances, outputs]");
      const py::ssize_t size = own.shape(1);
      forward(columns(rows, start, size), counters(start, size), keys, false, true, own, std::nullopt);
      const Floats by = floats(by_logits(number));
      backward(table ? pulled(by, own, *table, static_cast<py::ssize_t>(number)) : by, std::nullopt);
      adam(values, first, second, gradient_, learning_rate, steps++, std::nullopt);
      start += size;
    }
  }

  // The same along a direction computed in Python: `direction()` is called when a batch's gradient and the memory
  // gradients are complete. Memories are as in `gradients`, but all arrays except the weights have a first axis over
  // batches.
  void train_along(const Longs& rows, const Floats& targets, const Floats& weights, const std::vector<py::ssize_t>& sizes,
                   const Array<std::int32_t>& keys, const std::vector<BatchArrays>& memories, Array<double>& memory_gradients,
                   const py::function& direction, Floats& values, Floats& first, Floats& second, double learning_rate, std::int64_t steps) {
    py::ssize_t start = 0, number = 0;
    for (const py::ssize_t size : sizes) {
      std::vector<BatchArrays> past;
      for (const auto& [rows_of, targets_of, shares, draws, keys_of] : memories) {
        past.emplace_back(at(rows_of, number), at(targets_of, number), at(shares, number), at(draws, number), at(keys_of, number));
      }
      gradients(past, memory_gradients);
      Floats losses({static_cast<py::ssize_t>(runs_), size});
      gradient(columns(rows, start, size), columns(targets, start, size), columns(weights, start, size), counters(start, size), keys,
               false, true, losses, std::nullopt);
      adam(values, first, second, floats(direction()), learning_rate, steps++, std::nullopt);
      start += size, ++number;
    }
  }

  void train_epoch(const Longs& rows, const Floats& targets, const Floats& factors, const Longs& order, int task_size, int batch_size,
                   const Array<std::int32_t>& keys, Floats& first, Floats& second, double learning_rate, std::int64_t steps,
                   std::optional<PenaltyArrays> penalty, std::optional<Floats> beta, std::optional<Floats> beta_first, std::optional<Floats> beta_second,
                   const std::vector<float>& beta_penalty, const std::vector<double>& beta_learning_rate, std::int64_t beta_steps) {
    const int count = check_rows(rows);
    const auto runs = static_cast<std::size_t>(runs_), size = static_cast<std::size_t>(count);
    require(batch_size > 0 && task_size >= 0 && task_size <= count, "there must be a batch, and no more current instances than all");
    require_shape(targets, {runs, size, static_cast<std::size_t>(outputs_)}, "targets");
    require_shape(factors, {runs, size}, "factors");
    require_shape(order, {runs, size}, "order");
    for (py::ssize_t i = 0; i < order.size(); ++i) require(order.data()[i] >= 0 && order.data()[i] < count, "order is no permutation");
    require_shape(keys, {runs, 2}, "keys");
    require_shape(first, {static_cast<std::size_t>(parameters_.size())}, "first moments");
    require_shape(second, {static_cast<std::size_t>(parameters_.size())}, "second moments");
    require(beta.has_value() == beta_first.has_value() && beta.has_value() == beta_second.has_value(), "beta comes with its moments");
    Beta betas{nullptr, nullptr, nullptr, 0, 0, beta_steps};
    if (beta) {
      require(beta_penalty.size() == runs && beta_learning_rate.size() == runs, "every run has its penalty and its learning rate of beta");
      for (const auto* values : {&*beta, &*beta_first, &*beta_second}) require_shape(*values, {runs, static_cast<std::size_t>(task_size)}, "beta");
      betas.values = beta->mutable_data(), betas.first = beta_first->mutable_data(), betas.second = beta_second->mutable_data();
    }
    float *values = parameters_.mutable_data(), *first_at = first.mutable_data(), *second_at = second.mutable_data();
    const auto sizes = parameter_sizes(outputs_);
    const Penalty whole = penalty_of(penalty, parameters_.size());
    const py::gil_scoped_release release;
    for (int run = 0; run < runs_; ++run) {
      const std::ptrdiff_t begin = static_cast<std::ptrdiff_t>(run) * count;
      const Epoch epoch{rows.data() + begin, targets.data() + begin * outputs_, factors.data() + begin, order.data() + begin, count, task_size, batch_size};
      Adam optimizer(kernels_, learning_rate, steps);
      const auto v = parameters_of(values, runs_, run, outputs_), m1 = parameters_of(first_at, runs_, run, outputs_),
                 m2 = parameters_of(second_at, runs_, run, outputs_), g = parameters_of(gradient_data_, runs_, run, outputs_);
      for (std::size_t i = 0; i < sizes.size(); ++i) optimizer.add(sizes[i], v[i], m1[i], m2[i], g[i], whole.from(v[i] - values));
      Beta of_run = betas;
      if (betas.values) {
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(run) * task_size;
        of_run.values += at, of_run.first += at, of_run.second += at;
        of_run.penalty = beta_penalty[static_cast<std::size_t>(run)];
        of_run.learning_rate = beta_learning_rate[static_cast<std::size_t>(run)];
      }
      clops::train_epoch(kernels_, epoch, outputs_, of_run, optimizer, [&](Batch& batch, float* losses) {
        batch.instances.frames = frames_;
        differentiate(run, batch, keys_of(keys, run), Normalization::batch, true, losses);
      });
    }
  }

 private:
  // The gradient with respect to a batch's logits plus that of the pull to the table; then the logits are written to
  // the table.
  Floats pulled(const Floats& by, const Floats& logits, Table& table, py::ssize_t number) const {
    auto& [values, read, pull, written] = table;
    const py::ssize_t count = logits.size() / outputs_;
    const auto has_all = [&](const auto& kept) { return kept.ndim() == 2 && number < kept.shape(0) && count <= kept.shape(1); };
    require(by.size() == logits.size(), "the gradient by the logits does not have the expected shape");
    require(values.ndim() == 2 && values.shape(1) == outputs_, "a table of logits is [places, outputs]");
    require(has_all(read) && has_all(pull) && has_all(written), "every instance has a place to read, one to write, and a pull");
    float* const there = values.mutable_data();
    const py::ssize_t end = values.shape(0);  // Clang before 16 cannot capture `values` in a lambda
    const auto at_place = [&](const Longs& places, py::ssize_t i) {
      const std::int64_t place = *places.data(number, i);
      require(place >= 0 && place < end, "a place is not in the table");
      return there + place * outputs_;
    };
    Floats result({static_cast<py::ssize_t>(runs_), count / runs_, static_cast<py::ssize_t>(outputs_)});
    float* to = result.mutable_data();
    for (py::ssize_t i = 0; i < count; ++i) {
      const float *other = at_place(read, i), *own = logits.data() + i * outputs_, *from = by.data() + i * outputs_;
      for (int c = 0; c < outputs_; ++c) *to++ = from[c] + *pull.data(number, i) * (own[c] - other[c]);
    }
    for (py::ssize_t i = 0; i < count; ++i) std::copy_n(logits.data() + i * outputs_, outputs_, at_place(written, i));
    return result;
  }

  static Penalty penalty_of(std::optional<PenaltyArrays>& arrays, py::ssize_t size) {
    if (!arrays) return {};
    auto& [importance, centre, path] = *arrays;
    require(importance.size() == size && centre.size() == size && (!path || path->size() == size), "a penalty needs vectors of equal size");
    return {importance.data(), centre.data(), path ? path->mutable_data() : nullptr};
  }

  void differentiate(int run, const Batch& batch, Keys keys, Normalization normalization, bool track, float* losses) {
    const Statistics<float> tracked = tracked_of(run);
    kernels_.gradient(network_of(parameters_.data(), runs_, run, outputs_), outputs_, loss_, normalization, statistics_of(run),
                      track ? &tracked : nullptr, batch, keys, network_of(gradient_data_, runs_, run, outputs_), losses,
                      workspace_.of(kernels_.gradient_workspace(batch.instances.count, outputs_)));
  }

  // Checks a batch [S, count] as `gradient` takes it, and returns count.
  int check_batch(const Longs& rows, const Floats& targets, const Floats& weights, const Longs& draws, const Array<std::int32_t>& keys,
                  const std::optional<Floats>& frames = std::nullopt) const {
    const int count = check_rows(rows, frames);
    const auto runs = static_cast<std::size_t>(runs_), size = static_cast<std::size_t>(count);
    require_shape(targets, {runs, size, static_cast<std::size_t>(outputs_)}, "targets");
    require_shape(weights, {runs, size}, "weights");
    require_shape(draws, {size}, "draws");
    require_shape(keys, {runs, 2}, "keys");
    return count;
  }

  // One run's part of a batch.
  Batch batch_of(const Frames& frames, int run, int count, const Longs& rows, const Floats& targets, const Floats& weights, const Longs& draws) const {
    const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(run) * count;
    return {{frames, rows.data() + first, nullptr, count}, targets.data() + first * outputs_, weights.data() + first, draws.data()};
  }

  // Checks rows [S, count] of the data set, or of other frames, and returns count.
  int check_rows(const Longs& rows, const std::optional<Floats>& frames = std::nullopt) const {
    require(rows.ndim() == 2 && rows.shape(0) == runs_, "rows must be [S, instances]");
    if (frames) require(frames->ndim() == 2 && static_cast<std::size_t>(frames->shape(1)) == kFrameLength, "frames must be [n, 2500]");
    const py::ssize_t end = frames ? frames->shape(0) : frame_count_;
    for (py::ssize_t i = 0; i < rows.size(); ++i) require(rows.data()[i] >= 0 && rows.data()[i] < end, "a row is not in the data set");
    return static_cast<int>(rows.shape(1));
  }

  // The frames of the data set, or other frames, which are signals already.
  Frames frames_of(const std::optional<Floats>& others) const {
    return others ? Frames{others->data(), nullptr, nullptr, nullptr} : frames_;
  }

  Statistics<float> tracked_of(int run) const {
    Statistics<float> result{};
    for (std::size_t b = 0; b < 3; ++b) {
      result.mean[b] = tracked_[b].mean + run * kChannels[b + 1];
      result.variance[b] = tracked_[b].variance + run * kChannels[b + 1];
    }
    return result;
  }

  Statistics<const float> statistics_of(int run) const {
    const Statistics<float> tracked = tracked_of(run);
    Statistics<const float> result{};
    for (int b = 0; b < 3; ++b) result.mean[b] = tracked.mean[b], result.variance[b] = tracked.variance[b];
    return result;
  }

  static Keys keys_of(const Array<std::int32_t>& keys, int run) {
    const std::int32_t* at = keys.data() + 2 * run;
    return {static_cast<std::uint32_t>(at[0]), static_cast<std::uint32_t>(at[1])};
  }

  // A forward pass without its backward pass yet; `count` is 0 if there is no such pass.
  struct UnderWay {
    int count;
    Normalization normalization;
    bool dropout;
  };

  struct BlockStatistics {
    float *mean, *variance;
  };

  const Kernels& kernels_;
  const Loss loss_;
  const int runs_, outputs_;
  Floats parameters_, gradient_;
  std::vector<Floats> means_, variances_;
  py::array stored_;
  std::optional<Floats> gain_, offset_;
  std::vector<BlockStatistics> tracked_;
  float* gradient_data_ = nullptr;
  py::ssize_t frame_count_ = 0;
  Frames frames_{};
  Workspace workspace_;
  std::vector<Workspace> halves_;  // one per run; calls between the halves use workspace_
  UnderWay under_way_{};
};

}  // namespace clops
