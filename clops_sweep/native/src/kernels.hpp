// The interface of the kernels, in plain types: the only header shared by the Python module and every variant.
//
// All arrays are float32, int64 or int32 in row-major order and belong to the caller. The network is the paper's: three
// blocks Conv1d(kernel 7, stride 3) - BatchNorm - MaxPool(2) - ReLU - Dropout(0.1), Linear(320, 100) - ReLU,
// Linear(100, outputs).
#pragma once

#include <cstddef>
#include <cstdint>

#include "programs.hpp"

namespace clops {

// The loss of logits: a sigmoid per output, averaged over the outputs, or a softmax over them.
enum class Loss { sigmoid, softmax };

// Pointers to the parameters of one network (T = const float), or to their gradient (T = float).
template <class T>
struct Network {
  T* conv_weight[3];  // [channels][inputs][7]
  T* conv_bias[3];
  T* norm_weight[3];
  T* norm_bias[3];
  T* linear1_weight;  // [100][320]
  T* linear1_bias;
  T* linear2_weight;  // [outputs][100]
  T* linear2_bias;
};

// Batch-norm running statistics of the three blocks.
template <class T>
struct Statistics {
  T* mean[3];
  T* variance[3];
};

// The frames of a data set: signal = gain * stored + offset, or the stored values if gain is null.
struct Frames {
  const float* floats;     // one of these two is null
  const std::int16_t* integers;
  const float* gain;       // [frames]
  const float* offset;     // [frames]
};

// Instances of one network: their frames, and an optional perturbation added to them.
struct Instances {
  Frames frames;
  const std::int64_t* rows;  // [count]
  const float* noise;        // [count][2500] or null
  int count;
};

struct Batch {
  Instances instances;
  const float* targets;       // [count][outputs]
  const float* weights;       // [count], the loss is sum_i weights_i l_i
  const std::int64_t* draws;  // [count], counters of the dropout masks
};

// Normalisation by the batch's own statistics, or by the running ones.
enum class Normalization { batch, running };

// Settings of a differentiable pass.
struct Pass {
  Normalization normalization;
  const Keys* keys;  // keys of the dropout masks; null without dropout
};

// The function applied to each instance's gradient before summation.
enum class Each { square, absolute };

// Logits, or probabilities; one per instance without dropout, `samples` per instance with it.
struct Prediction {
  bool dropout;
  bool probabilities;
  int samples;
};

// 1/2 sum importance (x - centre)^2, whose gradient a step adds to its own. If `path` is not null, it decreases by the
// gradient without penalty times the change of x.
struct Penalty {
  const float* importance;
  const float* centre;
  float* path;
};

// One variant of the kernels, compiled for one instruction set. `workspace` is memory aligned to 64 bytes, of at least
// the size that the functions of that name return; its content before and after a call is arbitrary.
struct Kernels {
  const char* name;

  std::size_t (*gradient_workspace)(int count, int outputs);

  // losses [count] and the gradient of sum_i weights_i l_i. With Normalization::batch, `tracked` (if not null) is
  // updated by the batch's statistics with momentum 0.1, and the gradient of the convolutions' biases is exactly zero.
  void (*gradient)(const Network<const float>& network, int outputs, Loss loss, Normalization normalization,
                   const Statistics<const float>& running, const Statistics<float>* tracked, const Batch& batch,
                   Keys keys, const Network<float>& gradient, float* losses, void* workspace);

  // The same in two steps, for any loss: first logits [count][outputs], then the gradient, from that with respect to
  // the logits. Between the two, workspace (of `gradient_workspace`) and network must not change. `draws` may be null
  // without keys.
  void (*forward)(const Network<const float>& network, int outputs, const Statistics<const float>& running,
                  const Statistics<float>* tracked, const Instances& instances, const std::int64_t* draws, const Pass& pass,
                  float* logits, void* workspace);
  void (*backward)(const Network<const float>& network, int outputs, int count, const Pass& pass, const float* by_logits,
                   const Network<float>& gradient, void* workspace);

  // Adds to `sums`, laid out like a gradient, `each` of every instance's gradient, given the gradient with respect to
  // its logits, a row of [count][outputs]; with running statistics and without dropout. The workspace is that of the
  // gradient of a batch of `lanes` instances.
  int lanes;
  void (*sum_of_each)(const Network<const float>& network, int outputs, const Statistics<const float>& running,
                      const Instances& instances, const float* by_logits, Each each, const Network<float>& sums, void* workspace);

  // losses [count] and the gradient of sum_i weights_i l_i with respect to the logits, [count][outputs]. Of `batch` it
  // uses count, targets and weights. The workspace holds `outputs` vectors of 64 bytes.
  void (*differentiate)(Loss loss, int outputs, const float* logits, const Batch& batch, float* losses, float* by_logits,
                        void* workspace);

  std::size_t (*predict_workspace)(int outputs);

  // [count][samples][outputs]; the mask of sample t of instance i has the counter i * samples + t.
  void (*predict)(const Network<const float>& network, int outputs, Loss loss, const Statistics<const float>& running,
                  const Instances& instances, const Prediction& what, Keys keys, float* result, void* workspace);

  // One Adam step of n values: m += (1 - b1) (g - m), v = b2 v + (1 - b2) g g, x -= rate m / (sqrt(v) / root + eps).
  void (*adam)(std::size_t n, float* values, float* first, float* second, const float* gradient, float rate,
               float root);

  // The same along a penalised gradient.
  void (*penalised_adam)(std::size_t n, float* values, float* first, float* second, const float* gradient, const Penalty& penalty,
                         float rate, float root);

  // Any other network.
  const ProgramKernels* programs;
};

}  // namespace clops
