// Networks as programs of layers: what Python describes, and what a variant's kernels do with it, in plain types.
//
// Frames, logits and parameters are float32 in row-major order and belong to the caller. A value is what one layer
// returns, [channels][height][width] for each instance; value 0 is the frames.
#pragma once

#include <cstddef>
#include <cstdint>

namespace clops {

// The stream of dropout masks: see masks.hpp.
struct Keys {
  std::uint32_t first, second;
};

// A setting of a layer: numbers, or a text.
struct Field {
  const char* name;
  const double* numbers;
  int count;
  const char* text;  // null for numbers
};

struct LayerDescription {
  const char* kind;
  const int* inputs;  // numbers of values
  int input_count;
  int output;
  const Field* fields;
  int field_count;
};

// Running statistics.
struct Buffer {
  float* at;
  std::size_t size;
};

struct ProgramDescription {
  const LayerDescription* layers;
  int layer_count;
  int shape[3];  // channels, height and width of a frame
  std::size_t parameter_count;
  const Buffer* buffers;
  int buffer_count;
};

// A pass that `backward` can follow.
struct TrainingPass {
  const float* frames;  // [count][channels][height][width]
  int count;
  const Keys* keys;           // keys of the dropout masks; null without dropout
  const std::int64_t* draws;  // [count], counters of the dropout masks; null without keys
  bool batch_statistics;      // else the running ones
  bool track;                 // whether batch statistics update the running ones
};

// Passes with running statistics: one an instance, or `samples` an instance with dropout.
struct EvaluationPass {
  const float* frames;
  int count;
  int samples;
  const Keys* keys;    // null without dropout
  std::int64_t first;  // the mask of sample t of instance i has the counter first + i * samples + t
};

// Programs of one variant. All functions throw std::invalid_argument for what they cannot do.
struct ProgramKernels {
  void* (*make)(const ProgramDescription& description);
  void (*release)(void* program);
  int (*outputs)(const void* program);
  void (*output_shape)(const void* program, int (&shape)[3]);

  // logits [count][outputs]
  void (*forward)(void* program, const float* parameters, const TrainingPass& pass, float* logits);

  // Adds the gradient to `gradient`, given that with respect to the logits of the forward pass that was the last
  // call. Parameters must not have changed since.
  void (*backward)(void* program, const float* parameters, const float* by_logits, float* gradient);

  // logits [count][samples][outputs]
  void (*predict)(void* program, const float* parameters, const EvaluationPass& pass, float* logits);

  // Adds the squares, or absolute values, of each instance's gradient to `sums`, given that with respect to its logits;
  // with running statistics and without dropout.
  void (*sum_of_each)(void* program, const float* parameters, const float* frames, int count, const float* by_logits, bool absolute,
                      float* sums);
};

}  // namespace clops
