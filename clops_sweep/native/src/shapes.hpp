// The sizes of the network's blocks.
#pragma once

namespace clops::CLOPS_VARIANT {

constexpr int kFrame = 2500, kKernel = 7, kStride = 3;
constexpr int kFeatures = 320, kHidden = 100;
constexpr float kEpsilon = 1e-5f, kMomentum = 0.1f;

// A block's convolution has `length` outputs per channel. Pooling takes them in pairs, and drops the last one of an odd
// number. The convolution works on pairs too; the last pair may be half empty.
template <int inputs_, int outputs_, int input_length_, int first_unit_>
struct Block {
  static constexpr int inputs = inputs_, outputs = outputs_, input_length = input_length_;
  static constexpr int length = (input_length - kKernel) / kStride + 1;
  static constexpr int pooled = length / 2;
  static constexpr int pairs = (length + 1) / 2;
  static constexpr int first_unit = first_unit_;  // first unit of its dropout layer
};

using Block1 = Block<1, 4, kFrame, 0>;
using Block2 = Block<4, 16, Block1::pooled, Block1::outputs * Block1::pooled>;
using Block3 = Block<16, 32, Block2::pooled, Block2::first_unit + Block2::outputs * Block2::pooled>;

constexpr int kWords = (Block3::first_unit + kFeatures) / 2;

static_assert(Block1::pooled == 416 && Block2::pooled == 68 && Block3::pooled == 10);
static_assert(Block3::outputs * Block3::pooled == kFeatures && kWords == 1536);

}  // namespace clops::CLOPS_VARIANT
