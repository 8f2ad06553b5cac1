// The class that Python calls for a network as a program of layers: it checks arguments and passes their memory to a
// variant's kernels.
#pragma once

#include <pybind11/stl.h>

#include <deque>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "variants.hpp"

namespace clops {

// Layers as dictionaries of Python, in the form that the kernels read.
class Descriptions {
 public:
  explicit Descriptions(const std::vector<py::dict>& layers) {
    for (const py::dict& layer : layers) add(layer);
  }

  const std::vector<LayerDescription>& all() const { return all_; }

 private:
  void add(const py::dict& layer) {
    std::vector<Field>& fields = fields_.emplace_back();
    LayerDescription description{};
    for (const auto& [key, value] : layer) {
      const char* name = text(key);
      if (std::string(name) == "kind") {
        description.kind = text(value);
      } else if (std::string(name) == "inputs") {
        const std::vector<int>& inputs = inputs_.emplace_back(value.cast<std::vector<int>>());
        description.inputs = inputs.data();
        description.input_count = static_cast<int>(inputs.size());
      } else if (std::string(name) == "output") {
        description.output = value.cast<int>();
      } else {
        fields.push_back(field(name, value));
      }
    }
    if (!description.kind || description.output < 1) throw std::invalid_argument("a layer needs a kind, and an output of 1 or more");
    description.fields = fields.data();
    description.field_count = static_cast<int>(fields.size());
    all_.push_back(description);
  }

  Field field(const char* name, const py::handle& value) {
    if (py::isinstance<py::str>(value)) return {name, nullptr, 0, text(value)};
    const bool is_row = py::isinstance<py::tuple>(value) || py::isinstance<py::list>(value);
    std::vector<double>& numbers = numbers_.emplace_back();
    if (is_row) {
      numbers = value.cast<std::vector<double>>();
    } else {
      numbers.push_back(value.cast<double>());
    }
    return {name, numbers.data(), static_cast<int>(numbers.size()), nullptr};
  }

  const char* text(const py::handle& value) { return texts_.emplace_back(value.cast<std::string>()).c_str(); }

  // Deques, so that content stays where it is.
  std::deque<std::string> texts_;
  std::deque<std::vector<double>> numbers_;
  std::deque<std::vector<int>> inputs_;
  std::deque<std::vector<Field>> fields_;
  std::vector<LayerDescription> all_;
};

// A network over parameters and running statistics that Python owns. Calls release the interpreter's lock, but an object
// may be used by one thread at a time.
class NetworkProgram {
 public:
  NetworkProgram(const std::string& name, const std::vector<py::dict>& layers, std::tuple<int, int, int> shape, Floats parameters,
                 std::vector<Floats> buffers)
      : kernels_(variant(name)), parameters_(std::move(parameters)), buffers_(std::move(buffers)) {
    require(parameters_.ndim() == 1, "parameters must be one vector");
    const Descriptions descriptions(layers);
    std::vector<Buffer> memory;
    for (Floats& buffer : buffers_) {
      require(buffer.ndim() == 1, "a buffer must be one vector");
      memory.push_back({buffer.mutable_data(), static_cast<std::size_t>(buffer.size())});
    }
    const auto [channels, height, width] = shape;
    const std::vector<LayerDescription>& all = descriptions.all();
    const int layer_count = static_cast<int>(all.size()), buffer_count = static_cast<int>(memory.size());
    handle_ = programs().make({all.data(), layer_count, {channels, height, width}, size_of_parameters(), memory.data(), buffer_count});
    size_of_frame_ = static_cast<std::size_t>(channels) * static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  }
  NetworkProgram(const NetworkProgram&) = delete;
  NetworkProgram& operator=(const NetworkProgram&) = delete;
  ~NetworkProgram() {
    if (handle_) programs().release(handle_);
  }

  const Kernels& kernels() const { return kernels_; }
  const ProgramKernels& programs() const { return *kernels_.programs; }
  void* handle() const { return handle_; }
  Floats parameters() const { return parameters_; }
  int outputs() const { return programs().outputs(handle_); }
  std::size_t size_of_frame() const { return size_of_frame_; }

  std::tuple<int, int, int> output_shape() const {
    int shape[3];
    programs().output_shape(handle_, shape);
    return {shape[0], shape[1], shape[2]};
  }

  // Logits [B, C] of frames [B, channels, samples]; keeps what `backward` needs.
  void forward(const Floats& frames, const std::optional<Array<std::int32_t>>& keys, const std::optional<Longs>& draws,
               bool batch_statistics, bool track, Floats& logits) {
    const int count = count_of(frames);
    require(count > 0, "a batch needs an instance");
    require(keys.has_value() == draws.has_value(), "dropout keys come with draws");
    const Keys stream = keys_of(keys);
    if (draws) require_shape(*draws, {static_cast<std::size_t>(count)}, "draws");
    require_shape(logits, {static_cast<std::size_t>(count), size_of_outputs()}, "logits");
    float* to = logits.mutable_data();
    const TrainingPass pass{frames.data(), count, keys ? &stream : nullptr, draws ? draws->data() : nullptr, batch_statistics, track};
    const py::gil_scoped_release release;
    programs().forward(handle_, parameters_.data(), pass, to);
    count_ = static_cast<std::size_t>(count);
  }

  // The gradient [P], given that with respect to the logits of the last `forward`, [B, C]; or adds it to what is there.
  void backward(const Floats& by_logits, Floats& gradient, bool add) {
    require_shape(by_logits, {count_, size_of_outputs()}, "the gradient by the logits");
    require_shape(gradient, {size_of_parameters()}, "gradient");
    float* to = gradient.mutable_data();
    const py::gil_scoped_release release;
    if (!add) std::fill_n(to, size_of_parameters(), 0.0f);
    programs().backward(handle_, parameters_.data(), by_logits.data(), to);
  }

  // Logits [m, samples, C] with running statistics; with keys, of samples with dropout.
  void predict(const Floats& frames, const std::optional<Floats>& parameters, int samples, const std::optional<Array<std::int32_t>>& keys,
               Floats& logits, std::int64_t first) {
    const int count = count_of(frames);
    require(samples > 0, "there must be a sample");
    if (parameters) require_shape(*parameters, {size_of_parameters()}, "parameters");
    const Keys stream = keys_of(keys);
    require_shape(logits, {static_cast<std::size_t>(count), static_cast<std::size_t>(samples), size_of_outputs()}, "logits");
    float* to = logits.mutable_data();
    const float* values = parameters ? parameters->data() : parameters_.data();
    const py::gil_scoped_release release;
    programs().predict(handle_, values, {frames.data(), count, samples, keys ? &stream : nullptr, first}, to);
  }

  // Adds the squares, or absolute values, of each instance's gradient to `sums` [P], given that with respect to its
  // logits, a row of [m, C]; in evaluation mode.
  void sum_of_instance_gradients(const Floats& frames, const Floats& by_logits, bool absolute, Floats& sums) {
    const int count = count_of(frames);
    require_shape(by_logits, {static_cast<std::size_t>(count), size_of_outputs()}, "the gradient by the logits");
    require_shape(sums, {size_of_parameters()}, "sums");
    float* to = sums.mutable_data();
    const py::gil_scoped_release release;
    programs().sum_of_each(handle_, parameters_.data(), frames.data(), count, by_logits.data(), absolute, to);
  }

 private:
  std::size_t size_of_outputs() const { return static_cast<std::size_t>(outputs()); }
  std::size_t size_of_parameters() const { return static_cast<std::size_t>(parameters_.size()); }

  // The number of frames [m, ...].
  int count_of(const Floats& frames) const {
    require(frames.ndim() >= 1, "frames must be [instances, channels, samples]");
    const auto count = static_cast<std::size_t>(frames.shape(0));
    const bool fits = static_cast<std::size_t>(frames.size()) == count * size_of_frame_;
    require(fits, "frames do not have the shape that the program was made for");
    return static_cast<int>(count);
  }

  static Keys keys_of(const std::optional<Array<std::int32_t>>& keys) {
    if (!keys) return {};
    require_shape(*keys, {2}, "keys");
    return {static_cast<std::uint32_t>(keys->data()[0]), static_cast<std::uint32_t>(keys->data()[1])};
  }

  const Kernels& kernels_;
  Floats parameters_;
  std::vector<Floats> buffers_;
  void* handle_ = nullptr;
  std::size_t size_of_frame_ = 0, count_ = 0;
};

}  // namespace clops
