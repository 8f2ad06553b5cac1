// Runs every kernel of one variant on arrays of exactly the documented sizes, for the sanitizers to watch. What comes of
// it goes to standard output, as float32, to be compared with what another processor makes of it.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <utility>
#include <vector>

#include "frame_statistics.hpp"
#include "layout.hpp"
#include "training.hpp"

namespace clops::CLOPS_VARIANT {
extern const Kernels kernels;
}

using namespace clops;

namespace {

void tell(const std::vector<float>& values) { std::fwrite(values.data(), sizeof(float), values.size(), stdout); }

std::vector<float> numbers(std::size_t n, float scale) {
  std::vector<float> values(n);
  std::uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = scale * (static_cast<float>(state >> 8) / (1 << 23) - 1);
  }
  return values;
}

struct Memory {
  explicit Memory(std::size_t bytes) : at(std::aligned_alloc(64, (bytes + 63) / 64 * 64)) {}
  Memory(const Memory&) = delete;
  ~Memory() { std::free(at); }
  void* at;
};

void run(int outputs, Loss loss, int count, bool integers, bool with_noise) {
  const Kernels& kernels = CLOPS_VARIANT::kernels;
  const std::size_t n = parameter_count(outputs), size = static_cast<std::size_t>(count);
  std::vector<float> parameters = numbers(n, 0.1f), gradient(n), first(n), second(n);
  std::vector<float> statistics[6];
  for (int i = 0; i < 6; ++i) statistics[i].assign(static_cast<std::size_t>(kChannels[i % 3 + 1]), i < 3 ? 0.0f : 1.0f);
  constexpr std::size_t frames = 5;
  const std::vector<float> floats = numbers(frames * kFrameLength, 1), gain = numbers(frames, 1), offset = numbers(frames, 1);
  const std::vector<std::int16_t> shorts(frames * kFrameLength, 77);
  const std::vector<float> noise = numbers(with_noise ? size * kFrameLength : 0, 1);
  std::vector<std::int64_t> rows(size), draws(size), order(size);
  for (std::size_t i = 0; i < size; ++i) rows[i] = static_cast<std::int64_t>(i % frames), draws[i] = static_cast<std::int64_t>(i), order[i] = count - 1 - static_cast<std::int64_t>(i);
  std::vector<float> targets(size * static_cast<std::size_t>(outputs), 0.0f), weights(size, 1.0f / static_cast<float>(count)), losses(size);
  for (std::size_t i = 0; i < size; ++i) targets[i * static_cast<std::size_t>(outputs)] = 1.0f;

  const Frames where{integers ? nullptr : floats.data(), integers ? shorts.data() : nullptr, integers ? gain.data() : nullptr, integers ? offset.data() : nullptr};
  Statistics<const float> running{};
  Statistics<float> tracked{};
  for (std::size_t b = 0; b < 3; ++b) {
    running.mean[b] = tracked.mean[b] = statistics[b].data();
    running.variance[b] = tracked.variance[b] = statistics[b + 3].data();
  }
  const auto network = network_of<const float>(parameters.data(), outputs);
  const auto to = network_of(gradient.data(), outputs);
  const Batch batch{{where, rows.data(), nullptr, count}, targets.data(), weights.data(), draws.data()};
  const Keys keys{0xFFFFFFFFu, 0x80000000u};
  Memory workspace(kernels.gradient_workspace(count, outputs));
  const auto told = [&](const std::vector<float>& values) {
    tell(values);
    tell(gradient);
  };
  kernels.gradient(network, outputs, loss, Normalization::batch, running, &tracked, batch, keys, to, losses.data(), workspace.at);
  told(losses);
  kernels.gradient(network, outputs, loss, Normalization::running, running, nullptr, batch, keys, to, losses.data(), workspace.at);
  told(losses);
  std::vector<float> logits(size * static_cast<std::size_t>(outputs));
  for (const Pass& pass : {Pass{Normalization::batch, &keys}, Pass{Normalization::running, nullptr}}) {
    kernels.forward(network, outputs, running, pass.keys ? &tracked : nullptr, batch.instances, pass.keys ? draws.data() : nullptr, pass, logits.data(), workspace.at);
    kernels.backward(network, outputs, count, pass, logits.data(), to, workspace.at);
    told(logits);
  }
  Memory of_lanes(kernels.gradient_workspace(kernels.lanes, outputs));
  for (const Each each : {Each::square, Each::absolute}) {
    kernels.sum_of_each(network, outputs, running, batch.instances, logits.data(), each, to, of_lanes.at);
    tell(gradient);
  }
  kernels.adam(n, parameters.data(), first.data(), second.data(), gradient.data(), 1e-3f, 0.5f);
  std::vector<float> path(n);
  const std::vector<float> importance = numbers(n, 1), centre = numbers(n, 1);
  for (float* to : {path.data(), static_cast<float*>(nullptr)}) {
    kernels.penalised_adam(n, parameters.data(), first.data(), second.data(), gradient.data(), {importance.data(), centre.data(), to}, 1e-3f, 0.5f);
    tell(parameters);
  }

  for (const int samples : {1, 2, 5}) {
    Memory scratch(kernels.predict_workspace(outputs));
    std::vector<float> result(size * static_cast<std::size_t>(samples * outputs));
    const Instances instances{where, rows.data(), with_noise ? noise.data() : nullptr, count};
    for (const bool dropout : {false, true}) {
      kernels.predict(network, outputs, loss, running, instances, {dropout, dropout, samples}, keys, result.data(), scratch.at);
      tell(result);
    }
    for (const float value : result) {
      if (!std::isfinite(value)) std::abort();
    }
  }

  const int current = (count + 1) / 2;
  std::vector<float> beta(static_cast<std::size_t>(current), 1.0f), beta_first(beta.size()), beta_second(beta.size());
  std::vector<int> sizes(size / 4, 4);
  if (count % 4 > 0) sizes.push_back(count % 4);
  Optimizer adam(kernels, {n, parameters.data(), first.data(), second.data(), gradient.data(), {}}, 1e-3, 0);
  train_epoch(kernels, {where, rows.data(), 1, targets.data(), weights.data(), order.data(), sizes, current}, outputs,
              {beta.data(), beta_first.data(), beta_second.data(), 10.0f, 1e-3, 0}, adam, [&](const Batch& part, float* part_losses) {
                kernels.gradient(network, outputs, loss, Normalization::batch, running, &tracked, part, keys, to, part_losses, workspace.at);
              });
  tell(parameters);
  tell(beta);
  for (const std::vector<float>& each : statistics) tell(each);
}

template <class T>
void count_up(const std::vector<T>& content) {
  for (const std::size_t samples : {1u, 7u, 129u, 1250u}) {
    const std::size_t rows = content.size() / samples;
    const std::vector<T> frames(content.end() - static_cast<std::ptrdiff_t>(rows * samples), content.end());
    std::vector<double> found(4 * rows);
    frame_statistics(frames.data(), rows, samples, found.data());
    tell({found.begin(), found.end()});
  }
}

// Layers, as Python describes them.
struct Layers {
  void add(const char* kind, std::vector<int> inputs, const std::vector<std::pair<const char*, std::vector<double>>>& content, const char* name = nullptr) {
    const std::vector<int>& from = rows.emplace_back(std::move(inputs));
    std::vector<Field>& to = fields.emplace_back();
    for (const auto& [field, values] : content) {
      const std::vector<double>& kept = values_of_fields.emplace_back(values);
      to.push_back({field, kept.data(), static_cast<int>(kept.size()), nullptr});
    }
    if (name) to.push_back({"name", nullptr, 0, name});
    all.push_back({kind, from.data(), static_cast<int>(from.size()), last() + 1, to.data(), static_cast<int>(to.size())});
  }
  int last() const { return static_cast<int>(all.size()); }

  std::deque<std::vector<int>> rows;
  std::deque<std::vector<double>> values_of_fields;
  std::deque<std::vector<Field>> fields;
  std::vector<LayerDescription> all;
};

// A program with every layer.
void run_program(int count) {
  constexpr std::size_t parameter_count = 2000, frame = 3 * 2 * 19;
  const std::vector<float> parameters = numbers(parameter_count, 0.3f), frames = numbers(static_cast<std::size_t>(count) * frame, 1);
  std::vector<float> mean(5, 0.1f), variance(5, 1.5f);
  const Buffer buffers[] = {{mean.data(), mean.size()}, {variance.data(), variance.size()}};
  Layers layers;
  layers.add("convolution", {0}, {{"weight", {0}}, {"bias", {90}}, {"outputs", {5}}, {"kernel", {2, 3}}, {"stride", {1, 2}}, {"padding", {0, 1, 2, 1}}, {"dilation", {1, 1}}, {"groups", {1}}});
  layers.add("batch_norm", {1}, {{"weight", {95}}, {"bias", {100}}, {"mean", {0}}, {"variance", {1}}, {"eps", {1e-5}}, {"momentum", {0.1}}});
  layers.add("activation", {2}, {{"slope", {0}}}, "relu");
  layers.add("convolution", {3}, {{"weight", {105}}, {"bias", {-1}}, {"outputs", {10}}, {"kernel", {1, 3}}, {"stride", {2, 1}}, {"padding", {1, 0, 1, 1}}, {"dilation", {1, 1}}, {"groups", {5}}});
  layers.add("max_pool", {4}, {{"kernel", {1, 2}}, {"stride", {1, 2}}, {"padding", {0, 0}}, {"dilation", {1, 1}}, {"ceil_mode", {1}}});
  layers.add("group_norm", {5}, {{"weight", {140}}, {"bias", {150}}, {"groups", {2}}, {"eps", {1e-5}}});
  layers.add("dropout", {6}, {{"probability", {0.25}}, {"whole_channels", {0}}});
  for (const char* name : {"leaky_relu", "elu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh", "square", "safe_log"}) {
    layers.add("activation", {layers.last()}, {{"slope", {0.5}}}, name);
  }
  const int shared = layers.last();
  layers.add("average_pool", {shared}, {{"kernel", {1, 3}}, {"stride", {1, 1}}, {"padding", {0, 1}}, {"ceil_mode", {0}}, {"count_include_pad", {1}}});
  layers.add("add", {shared, layers.last()}, {});
  layers.add("adaptive_average_pool", {layers.last()}, {{"size", {1, 1}}});
  layers.add("multiply", {layers.last() - 1, layers.last()}, {});
  layers.add("concatenate", {layers.last(), shared}, {});
  layers.add("adaptive_max_pool", {layers.last()}, {{"size", {1, 3}}});
  layers.add("permute", {layers.last()}, {{"order", {2, 1, 0}}});
  layers.add("layer_norm", {layers.last()}, {{"weight", {160}}, {"bias", {180}}, {"axes", {1}}, {"eps", {1e-5}}});
  layers.add("dropout", {layers.last()}, {{"probability", {0.5}}, {"whole_channels", {1}}});
  layers.add("reshape", {layers.last()}, {{"shape", {60, 1, 1}}});
  layers.add("linear", {layers.last()}, {{"weight", {200}}, {"bias", {1000}}, {"outputs", {7}}});

  const ProgramKernels& programs = *CLOPS_VARIANT::kernels.programs;
  void* program = programs.make({layers.all.data(), layers.last(), {3, 2, 19}, parameter_count, buffers, 2});
  const std::size_t outputs = static_cast<std::size_t>(programs.outputs(program)), size = static_cast<std::size_t>(count);
  std::vector<std::int64_t> draws(size, 5);
  const Keys keys{0xFFFFFFFFu, 0x80000000u};
  std::vector<float> logits(size * outputs), gradient(parameter_count);
  for (const bool training : {true, false}) {
    programs.forward(program, parameters.data(), {frames.data(), count, training ? &keys : nullptr, training ? draws.data() : nullptr, training, training}, logits.data());
    programs.backward(program, parameters.data(), logits.data(), gradient.data());
    tell(logits);
    tell(gradient);
  }
  programs.sum_of_each(program, parameters.data(), frames.data(), count, logits.data(), true, gradient.data());
  tell(gradient);
  for (const int samples : {1, 3}) {
    std::vector<float> found(logits.size() * static_cast<std::size_t>(samples));
    programs.predict(program, parameters.data(), {frames.data(), count, samples, samples > 1 ? &keys : nullptr, 9}, found.data());
    tell(found);
  }
  tell(mean);
  tell(variance);
  programs.release(program);
}

}  // namespace

int main() {
  count_up(numbers(2501, 1));
  count_up(std::vector<std::int16_t>(2501, -77));
  const int lanes = CLOPS_VARIANT::kernels.lanes;  // instances of a group, of which the last one is mostly not full
  for (const int count : {1, lanes - 1, lanes, lanes + 1}) run(1, Loss::sigmoid, count, false, false);
  run(9, Loss::sigmoid, 5, true, true);
  run(12, Loss::softmax, 2 * lanes + 3, false, true);
  for (const int count : {2, lanes, 2 * lanes + 1}) run_program(count);
}
