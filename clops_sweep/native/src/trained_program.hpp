// The training of a program of layers for Python: its passes, losses and steps without returning to Python.
#pragma once

#include <algorithm>
#include <vector>

#include "network_program.hpp"
#include "trainable.hpp"

namespace clops {

// It uses the program's own workspace, so a gradient between the two halves of a pass makes an end to that pass.
class TrainedProgram : public Trainable {
 public:
  // An instance is as many rows of `frames` as fill a frame of the program.
  TrainedProgram(const NetworkProgram& program, bool softmax, Floats gradient, const py::array& frames, std::optional<Floats> gain,
                 std::optional<Floats> offset)
      : Trainable(program.kernels(), softmax, program.outputs(), program.parameters(), std::move(gradient),
                  frames_of(program, frames, std::move(gain), std::move(offset))),
        programs_(program.programs()), handle_(program.handle()), values_(parameters_.data()) {}

 private:
  static StoredFrames frames_of(const NetworkProgram& program, const py::array& frames, std::optional<Floats> gain, std::optional<Floats> offset) {
    require(frames.ndim() == 2 && frames.shape(1) > 0, "frames must be [n, samples]");
    const auto samples = static_cast<std::size_t>(frames.shape(1));
    require(program.size_of_frame() % samples == 0, "a frame of the program must be whole rows of the data set");
    return StoredFrames(frames, std::move(gain), std::move(offset), static_cast<int>(program.size_of_frame() / samples), samples);
  }

  void forward_half(const Instances& instances, const std::int64_t* draws, const Pass& pass, bool track, float* logits) override {
    const std::size_t rows = size_of(instances) * static_cast<std::size_t>(frames_.channels());
    signals_.resize(rows * frames_.samples());
    gather(instances.frames, instances.rows, rows, frames_.samples(), signals_.data());
    const bool by_batch = pass.normalization == Normalization::batch;
    programs_.forward(handle_, values_, {signals_.data(), instances.count, pass.keys, draws, by_batch, track}, logits);
  }

  void backward_half(int, const Pass&, const float* by_logits, float* gradient) override {
    std::fill_n(gradient, size_of_parameters(), 0.0f);
    programs_.backward(handle_, values_, by_logits, gradient);
  }

  void differentiate(const Batch& batch, Keys keys, Normalization normalization, bool track, float* losses) override {
    interrupt();
    logits_.resize(size_of(batch.instances) * size_of_outputs());
    by_logits_.resize(logits_.size());
    const Pass pass{normalization, &keys};
    forward_half(batch.instances, batch.draws, pass, track, logits_.data());
    differentiate_loss(batch, outputs_, logits_.data(), losses, by_logits_.data());
    backward_half(batch.instances.count, pass, by_logits_.data(), gradient_.mutable_data());
  }

  const ProgramKernels& programs_;
  void* const handle_;
  const float* const values_;
  std::vector<float> signals_, logits_, by_logits_;
};

}  // namespace clops
