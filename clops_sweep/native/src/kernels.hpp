// What the kernels offer, in plain types: the one header that the Python module and every variant of the kernels share.
//
// All arrays are float32, int64 or int32 in row-major order and belong to the caller. The network is the paper's:
// three blocks Conv1d(kernel 7, stride 3) - BatchNorm - MaxPool(2) - ReLU - Dropout(0.1), Linear(320, 100) - ReLU,
// Linear(100, outputs).
#pragma once

#include <cstddef>
#include <cstdint>

namespace clops {

// How logits become a loss: one sigmoid an output, averaged over the outputs, or a softmax over them.
enum class Loss { sigmoid, softmax };

// Where the parameters of one network are (T = const float), or their gradient (T = float).
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

// The frames of a data set where they lie: signal = gain * stored + offset, or stored as it is where gain is null.
struct Frames {
  const float* floats;     // one of these two is null
  const std::int16_t* integers;
  const float* gain;       // [frames]
  const float* offset;     // [frames]
};

// Instances of one network: which frames, and an optional perturbation that is added to them.
struct Instances {
  Frames frames;
  const std::int64_t* rows;  // [count]
  const float* noise;        // [count][2500] or null
  int count;
};

// The stream of dropout masks: see masks.hpp.
struct Keys {
  std::uint32_t first, second;
};

struct Batch {
  Instances instances;
  const float* targets;       // [count][outputs]
  const float* weights;       // [count], the loss is sum_i weights_i l_i
  const std::int64_t* draws;  // [count], counters of the dropout masks
};

// Normalisation by the batch's own statistics, or by the running ones.
enum class Normalization { batch, running };

// How a pass that is to be differentiated is computed.
struct Pass {
  Normalization normalization;
  const Keys* keys;  // of the dropout masks; null where nothing is dropped
};

// What is made of the gradient of each instance's own loss before they are summed.
enum class Each { square, absolute };

// Logits, or probabilities; every instance once without dropout, or `samples` times with it.
struct Prediction {
  bool dropout;
  bool probabilities;
  int samples;
};

// 1/2 sum importance (x - centre)^2, whose gradient a step adds to its own; `path`, if not null, loses the gradient without
// it times the change of x.
struct Penalty {
  const float* importance;
  const float* centre;
  float* path;

  // Of what begins so many values later.
  Penalty from(std::ptrdiff_t first) const {
    return importance ? Penalty{importance + first, centre + first, path ? path + first : nullptr} : Penalty{};
  }
};

// One variant of the kernels, compiled for one instruction set. `workspace` is memory aligned to 64 bytes, of at least
// the size that the functions of that name return; what is in it does not matter before and after a call.
struct Kernels {
  const char* name;

  std::size_t (*gradient_workspace)(int count, int outputs);

  // losses [count] and the gradient of sum_i weights_i l_i. With Normalization::batch, `tracked` (if not null) takes up
  // the batch's statistics with momentum 0.1, and the gradient of the convolutions' biases is exactly zero.
  void (*gradient)(const Network<const float>& network, int outputs, Loss loss, Normalization normalization,
                   const Statistics<const float>& running, const Statistics<float>* tracked, const Batch& batch,
                   Keys keys, const Network<float>& gradient, float* losses, void* workspace);

  // The same in two steps, for any loss: logits [count][outputs], and the gradient from that by the logits. Between the
  // two the workspace (of `gradient_workspace`) and the network stay as they are. `draws` may be null without keys.
  void (*forward)(const Network<const float>& network, int outputs, const Statistics<const float>& running,
                  const Statistics<float>* tracked, const Instances& instances, const std::int64_t* draws, const Pass& pass,
                  float* logits, void* workspace);
  void (*backward)(const Network<const float>& network, int outputs, int count, const Pass& pass, const float* by_logits,
                   const Network<float>& gradient, void* workspace);

  // Adds to `sums`, laid out like a gradient, what is made of the gradient of each instance's own loss, whose gradient by
  // its logits is one row of [count][outputs]: with running statistics and without dropout. The workspace is that of the
  // gradient of a batch of `lanes` instances.
  int lanes;
  void (*sum_of_each)(const Network<const float>& network, int outputs, const Statistics<const float>& running,
                      const Instances& instances, const float* by_logits, Each each, const Network<float>& sums, void* workspace);

  // losses [count] and the gradient of sum_i weights_i l_i by the logits, [count][outputs]. Of `batch` it
  // needs count, targets and weights. The workspace holds `outputs` vectors of 64 bytes.
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
};

}  // namespace clops
