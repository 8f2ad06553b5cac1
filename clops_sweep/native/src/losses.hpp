// Losses, their gradients and probabilities, from the logits of one group of instances, [outputs].
#pragma once

#include <math.h>  // not <cmath>: all variants would share its inline functions

#include "frames.hpp"

namespace clops::CLOPS_VARIANT {

inline float sigmoid(float q) {
  const float e = expf(-fabsf(q));
  return (q >= 0 ? 1.0f : e) / (1.0f + e);
}

// Softmax of one lane, in place, and the logarithm of its denominator.
inline float softmax(V* logits, int outputs, int lane) {
  float largest = logits[0][lane], total = 0;
  for (int c = 1; c < outputs; ++c) largest = fmaxf(largest, logits[c][lane]);
  for (int c = 0; c < outputs; ++c) {
    const float e = expf(logits[c][lane] - largest);
    logits[c][lane] = e;
    total += e;
  }
  for (int c = 0; c < outputs; ++c) logits[c][lane] /= total;
  return largest + logf(total);
}

// Replaces logits by probabilities in the first lanes.
inline void to_probabilities(Loss loss, V* logits, int outputs, int lanes) {
  for (int l = 0; l < lanes; ++l) {
    if (loss == Loss::softmax) {
      softmax(logits, outputs, l);
    } else {
      for (int c = 0; c < outputs; ++c) logits[c][l] = sigmoid(logits[c][l]);
    }
  }
}

// Replaces logits by the gradient of weights_i l_i with respect to them; unused lanes get 0.
inline void differentiate_loss(Loss loss, V* logits, int outputs, Group group, const Batch& batch, float* losses) {
  for (int l = 0; l < kLanes; ++l) {
    if (l >= group.count) {
      for (int c = 0; c < outputs; ++c) logits[c][l] = 0;
      continue;
    }
    const int i = group.first + l;
    const float* target = batch.targets + static_cast<std::ptrdiff_t>(i) * outputs;
    const float weight = batch.weights[i];
    float total = 0;
    if (loss == Loss::softmax) {
      float mass = 0;  // 1 for a one-hot target
      for (int c = 0; c < outputs; ++c) mass += target[c], total -= target[c] * logits[c][l];
      total += mass * softmax(logits, outputs, l);
      for (int c = 0; c < outputs; ++c) logits[c][l] = weight * (mass * logits[c][l] - target[c]);
    } else {
      const float share = weight / static_cast<float>(outputs);
      for (int c = 0; c < outputs; ++c) {
        const float q = logits[c][l];
        total += fmaxf(q, 0.0f) - q * target[c] + log1pf(expf(-fabsf(q)));
        logits[c][l] = share * (sigmoid(q) - target[c]);
      }
      total /= static_cast<float>(outputs);
    }
    losses[i] = total;
  }
}

// The same for logits [count][outputs], group by group.
inline void differentiate(Loss loss, int outputs, const float* logits, const Batch& batch, float* losses, float* by_logits,
                          void* workspace) {
  V* group = static_cast<V*>(workspace);
  for (int first = 0; first < batch.instances.count; first += kLanes) {
    const int left = batch.instances.count - first, count = left < kLanes ? left : kLanes;
    const std::ptrdiff_t start = static_cast<std::ptrdiff_t>(first) * outputs;
    for (int l = 0; l < count; ++l) {
      for (int c = 0; c < outputs; ++c) group[c][l] = logits[start + l * outputs + c];
    }
    differentiate_loss(loss, group, outputs, {first, count}, batch, losses);
    for (int l = 0; l < count; ++l) {
      for (int c = 0; c < outputs; ++c) by_logits[start + l * outputs + c] = group[c][l];
    }
  }
}

}  // namespace clops::CLOPS_VARIANT
