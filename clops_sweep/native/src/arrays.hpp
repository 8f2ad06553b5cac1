// Checks and conversions of Python's arrays, without a copy unless requested.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <stdexcept>
#include <string>

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

}  // namespace clops
