// Programs of layers for one variant; compiled like variant.cpp.
#include "program.hpp"

namespace clops::CLOPS_VARIANT {

namespace {

Program& program_of(void* program) { return *static_cast<Program*>(program); }

void* make_program(const ProgramDescription& description) { return new Program(description); }

void release_program(void* program) { delete static_cast<Program*>(program); }

int outputs(const void* program) { return static_cast<const Program*>(program)->outputs(); }

void output_shape(const void* program, int (&shape)[3]) {
  const Shape& of = static_cast<const Program*>(program)->output_shape();
  shape[0] = of.channels;
  shape[1] = of.height;
  shape[2] = of.width;
}

void forward_program(void* program, const float* parameters, const TrainingPass& pass, float* logits) {
  program_of(program).forward(parameters, pass, logits);
}

void backward_program(void* program, const float* parameters, const float* by_logits, float* gradient) {
  program_of(program).backward(parameters, by_logits, {gradient, nullptr});
}

void predict_program(void* program, const float* parameters, const EvaluationPass& pass, float* logits) {
  program_of(program).predict(parameters, pass, logits);
}

void sum_of_each_program(void* program, const float* parameters, const float* frames, int count, const float* by_logits, bool absolute,
                         float* sums) {
  program_of(program).sum_of_each(parameters, frames, count, by_logits, absolute, sums);
}

}  // namespace

extern const ProgramKernels programs;
const ProgramKernels programs = {make_program,     release_program, outputs,        output_shape, forward_program, backward_program,
                                 predict_program, sum_of_each_program};

}  // namespace clops::CLOPS_VARIANT
