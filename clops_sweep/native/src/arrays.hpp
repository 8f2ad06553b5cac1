// Checks and conversions of Python's arrays, without a copy unless requested.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace py = pybind11;

namespace clops {

template <class T>
using Array = py::array_t<T, py::array::c_style>;
using Floats = Array<float>;
using Longs = Array<std::int64_t>;

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

template <class T>
void require_shape(const Array<T>& array, std::initializer_list<std::size_t> shape, const char* name) {
  bool fits = static_cast<std::size_t>(array.ndim()) == shape.size();
  py::ssize_t axis = 0;
  for (const std::size_t size : shape) fits = fits && static_cast<std::size_t>(array.shape(axis++)) == size;
  if (!fits) throw std::invalid_argument(std::string(name) + " does not have the expected shape");
}

// The return value of a Python function as an array of floats.
inline Floats floats(const py::object& found) {
  require(py::isinstance<py::array_t<float, 0>>(found), "what Python makes of a gradient must be float32");
  return Floats::ensure(found);
}

// A copy of `size` entries of the second axis of [S, all, ...].
template <class T>
Array<T> columns(const Array<T>& all, py::ssize_t start, py::ssize_t size) {
  require(all.ndim() >= 2 && size >= 0 && start + size <= all.shape(1), "batches are no longer than the epoch");
  std::vector<py::ssize_t> shape(all.shape(), all.shape() + all.ndim());
  shape[1] = size;
  Array<T> part(shape);
  const py::ssize_t whole = all.strides(0) / all.itemsize(), each = all.strides(1) / all.itemsize();
  for (py::ssize_t run = 0; run < shape[0]; ++run) {
    std::copy_n(all.data() + run * whole + start * each, size * each, part.mutable_data() + run * size * each);
  }
  return part;
}

// One entry of the first axis, as a view.
template <class T>
Array<T> at(const Array<T>& all, py::ssize_t number) {
  require(all.ndim() >= 1 && number < all.shape(0), "every batch has its memories");
  const std::vector<py::ssize_t> shape(all.shape() + 1, all.shape() + all.ndim());
  return Array<T>(shape, all.data() + number * (all.strides(0) / all.itemsize()), all);
}

// start, start + 1, ...
inline Longs counters(py::ssize_t start, py::ssize_t size) {
  Longs result(size);
  std::iota(result.mutable_data(), result.mutable_data() + size, start);
  return result;
}

}  // namespace clops
