// The frames of a data set, in the memory of Python's arrays.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "arrays.hpp"
#include "kernels.hpp"

namespace clops {

class StoredFrames {
 public:
  // Frames [n, samples], float32 or int16, with a gain and an offset of each frame, or none of the two.
  StoredFrames(const py::array& stored, std::optional<Floats> gain, std::optional<Floats> offset, std::size_t samples)
      : stored_(stored), gain_(std::move(gain)), offset_(std::move(offset)), samples_(samples) {
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

  // Rows [count] of these frames, or of other ones, [n, samples], which are signals already.
  Instances at(const Longs& rows, const std::optional<Floats>& others = std::nullopt) const {
    require(rows.ndim() == 1, "rows must be [instances]");
    if (!others) return among(rows);
    check_frames(*others);
    check_rows(rows, others->shape(0));
    return {{others->data(), nullptr, nullptr, nullptr}, rows.data(), nullptr, static_cast<int>(rows.size())};
  }

  // Rows of these frames, of any shape.
  Instances among(const Longs& rows) const {
    check_rows(rows, stored_.shape(0));
    return {frames_, rows.data(), nullptr, static_cast<int>(rows.size())};
  }

 private:
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
  std::size_t samples_;
  Frames frames_{};
};

}  // namespace clops
