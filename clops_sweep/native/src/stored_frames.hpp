// The frames of a data set, in the memory of Python's arrays.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "arrays.hpp"
#include "kernels.hpp"

namespace clops {

// Writes gain * stored + offset of rows [count] to `to` [count][samples].
inline void gather(const Frames& frames, const std::int64_t* rows, std::size_t count, std::size_t samples, float* to) {
  for (std::size_t i = 0; i < count; ++i, to += samples) {
    const std::size_t start = static_cast<std::size_t>(rows[i]) * samples;
    if (!frames.gain && frames.floats) {
      std::copy_n(frames.floats + start, samples, to);
      continue;
    }
    const float gain = frames.gain ? frames.gain[rows[i]] : 1.0f, offset = frames.gain ? frames.offset[rows[i]] : 0.0f;
    const auto scale = [=](auto stored) { return static_cast<float>(stored) * gain + offset; };
    if (frames.floats) {
      std::transform(frames.floats + start, frames.floats + start + samples, to, scale);
    } else {
      std::transform(frames.integers + start, frames.integers + start + samples, to, scale);
    }
  }
}

// Stored rows, `channels` of which are an instance.
class StoredFrames {
 public:
  // Rows [n, samples], float32 or int16, with a gain and an offset of each row, or none of the two.
  StoredFrames(const py::array& stored, std::optional<Floats> gain, std::optional<Floats> offset, int channels, std::size_t samples)
      : stored_(stored), gain_(std::move(gain)), offset_(std::move(offset)), channels_(channels), samples_(samples) {
    check_frames(stored_);
    require(gain_.has_value() == offset_.has_value(), "gain and offset go together");
    if (gain_) {
      const auto count = static_cast<std::size_t>(stored_.shape(0));
      require_shape(*gain_, {count}, "gain");
      require_shape(*offset_, {count}, "offset");
      frames_.gain = gain_->data();
      frames_.offset = offset_->data();
    }
    if (Array<float>::check_(stored_)) {
      frames_.floats = static_cast<const float*>(stored_.data());
    } else if (Array<std::int16_t>::check_(stored_)) {
      frames_.integers = static_cast<const std::int16_t*>(stored_.data());
    } else {
      throw std::invalid_argument("frames must be contiguous, float32 or int16");
    }
  }

  int channels() const { return channels_; }
  std::size_t samples() const { return samples_; }

  // Instances of rows [B * channels] of these frames, or of other ones, [n, samples], which are signals already.
  Instances at(const Longs& rows, const std::optional<Floats>& others = std::nullopt) const {
    require(rows.ndim() == 1 && rows.size() % channels_ == 0, "rows must be [instances * channels]");
    if (!others) return among(rows);
    check_frames(*others);
    check_rows(rows, others->shape(0));
    return {{others->data(), nullptr, nullptr, nullptr}, rows.data(), nullptr, count_of(rows)};
  }

  // The same for rows of these frames in an array of any shape.
  Instances among(const Longs& rows) const {
    check_rows(rows, stored_.shape(0));
    return {frames_, rows.data(), nullptr, count_of(rows)};
  }

 private:
  int count_of(const Longs& rows) const { return static_cast<int>(rows.size() / channels_); }

  static void check_rows(const Longs& rows, py::ssize_t end) {
    const auto is_there = [end](std::int64_t row) { return row >= 0 && row < end; };
    require(std::all_of(rows.data(), rows.data() + rows.size(), is_there), "a row is not in the data set");
  }

  void check_frames(const py::array& frames) const {
    const bool fits = frames.ndim() == 2 && static_cast<std::size_t>(frames.shape(1)) == samples_;
    if (!fits) throw std::invalid_argument("frames must be [n, " + std::to_string(samples_) + "]");
  }

  py::array stored_;
  std::optional<Floats> gain_, offset_;
  int channels_;
  std::size_t samples_;
  Frames frames_{};
};

}  // namespace clops
