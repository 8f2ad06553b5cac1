// The paper's network for Python: checks arguments and passes their memory to a variant's kernels.
#pragma once

#include "layout.hpp"
#include "trainable.hpp"
#include "variants.hpp"

namespace clops {

class Core : public Trainable {
 public:
  Core(const std::string& name, bool softmax, int outputs, Floats parameters, Floats gradient, std::vector<Floats> means,
       std::vector<Floats> variances, const py::array& frames, std::optional<Floats> gain, std::optional<Floats> offset)
      : Trainable(variant(name), softmax, outputs, std::move(parameters), std::move(gradient),
                  StoredFrames(frames, std::move(gain), std::move(offset), 1, kFrameLength)),
        means_(std::move(means)), variances_(std::move(variances)) {
    require_shape(parameters_, {parameter_count(outputs)}, "parameters");
    require(means_.size() == 3 && variances_.size() == 3, "there are three blocks of statistics");
    for (std::size_t b = 0; b < 3; ++b) {
      const auto channels = static_cast<std::size_t>(kChannels[b + 1]);
      require_shape(means_[b], {channels}, "running means");
      require_shape(variances_[b], {channels}, "running variances");
      running_.mean[b] = tracked_.mean[b] = means_[b].mutable_data();
      running_.variance[b] = tracked_.variance[b] = variances_[b].mutable_data();
    }
    network_ = network_of(parameters_.data(), outputs);
    by_network_ = network_of(gradient_.mutable_data(), outputs);
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

 private:
  void forward_half(const Instances& instances, const std::int64_t* draws, const Pass& pass, bool track, float* logits) override {
    kernels_.forward(network_, outputs_, running_, track ? &tracked_ : nullptr, instances, draws, pass, logits,
                     half_.of(kernels_.gradient_workspace(instances.count, outputs_)));
  }

  void backward_half(int count, const Pass& pass, const float* by_logits, float* gradient) override {
    kernels_.backward(network_, outputs_, count, pass, by_logits, network_of(gradient, outputs_),
                      half_.of(kernels_.gradient_workspace(count, outputs_)));
  }

  void differentiate(const Batch& batch, Keys keys, Normalization normalization, bool track, float* losses) override {
    kernels_.gradient(network_, outputs_, loss_, normalization, running_, track ? &tracked_ : nullptr, batch, keys, by_network_, losses,
                      workspace_.of(kernels_.gradient_workspace(batch.instances.count, outputs_)));
  }

  std::vector<Floats> means_, variances_;
  Network<const float> network_{};
  Network<float> by_network_{};
  Statistics<const float> running_{};
  Statistics<float> tracked_{};  // the same memory
  Workspace workspace_;
  Workspace half_;  // between forward and backward; calls between them use workspace_
};

}  // namespace clops
