// The Python module clops_sweep.native._kernels.
#include "core.hpp"
#include "frame_statistics.hpp"

namespace clops {

template <class T>
Array<double> statistics_of(const Array<T>& stored) {
  require(stored.ndim() == 2 && stored.shape(1) > 0, "frames must be [m, samples], of a sample or more");
  const auto rows = static_cast<std::size_t>(stored.shape(0)), samples = static_cast<std::size_t>(stored.shape(1));
  Array<double> found({rows, std::size_t{4}});
  double* to = found.mutable_data();
  const py::gil_scoped_release release;
  frame_statistics(stored.data(), rows, samples, to);
  return found;
}

// Frames as signals: gain * stored + offset of some rows, [n, samples].
Floats gather(const Array<std::int16_t>& stored, const Floats& gain, const Floats& offset, const Longs& rows) {
  require(stored.ndim() == 2 && gain.size() == stored.shape(0) && offset.size() == gain.size(), "each frame has a gain and an offset");
  const py::ssize_t samples = stored.shape(1);
  Floats found({rows.size(), samples});
  float* to = found.mutable_data();
  for (py::ssize_t i = 0; i < rows.size(); ++i, to += samples) {
    const std::int64_t row = rows.data()[i];
    require(row >= 0 && row < stored.shape(0), "a row is not in the data set");
    const std::int16_t* from = stored.data() + row * samples;
    const float scale = gain.data()[row], shift = offset.data()[row];
    for (py::ssize_t t = 0; t < samples; ++t) to[t] = static_cast<float>(from[t]) * scale + shift;
  }
  return found;
}

}  // namespace clops

PYBIND11_MODULE(_kernels, module) {
  using namespace clops;
  using py::arg;
  module.doc() = "The paper's network on a CPU: gradients, predictions, Adam and whole epochs. See kernels.hpp.";
  module.def("variants", [] {
    std::vector<std::string> names;
    for (const Kernels* kernels : runnable_kernels()) names.emplace_back(kernels->name);
    return names;
  });
  module.def("frame_statistics", &statistics_of<std::int16_t>, arg("stored").noconvert());
  module.def("frame_statistics", &statistics_of<float>, arg("stored").noconvert());
  module.def("gather", &gather, arg("stored").noconvert(), arg("gain").noconvert(), arg("offset").noconvert(), arg("rows").noconvert());
  py::class_<Core>(module, "Core")
      .def(py::init<const std::string&, bool, int, int, Floats, Floats, std::vector<Floats>, std::vector<Floats>, const py::array&,
                    std::optional<Floats>, std::optional<Floats>>(),
           arg("variant"), arg("softmax"), arg("runs"), arg("outputs"), arg("parameters").noconvert(), arg("gradient").noconvert(),
           arg("means").noconvert(), arg("variances").noconvert(), arg("frames"), arg("gain").noconvert(), arg("offset").noconvert())
      .def("gradient", &Core::gradient, arg("rows").noconvert(), arg("targets").noconvert(), arg("weights").noconvert(),
           arg("draws").noconvert(), arg("keys").noconvert(), arg("running"), arg("track"), arg("losses").noconvert(),
           arg("frames").noconvert() = py::none())
      .def("forward", &Core::forward, arg("rows").noconvert(), arg("draws").noconvert(), arg("keys").noconvert(), arg("running"),
           arg("track"), arg("logits").noconvert(), arg("frames").noconvert() = py::none())
      .def("backward", &Core::backward, arg("by_logits").noconvert(), arg("gradient").noconvert() = py::none())
      .def("loss_by_logits", &Core::loss_by_logits, arg("logits").noconvert(), arg("targets").noconvert(), arg("weights").noconvert(),
           arg("losses").noconvert(), arg("by_logits").noconvert())
      .def("sum_of_each", &Core::sum_of_each, arg("rows").noconvert(), arg("by_logits").noconvert(), arg("absolute"),
           arg("sums").noconvert())
      .def("predict", &Core::predict, arg("rows").noconvert(), arg("noise").noconvert(), arg("parameters").noconvert(),
           arg("probabilities"), arg("samples"), arg("keys").noconvert(), arg("result").noconvert(),
           arg("frames").noconvert() = py::none())
      .def("adam", &Core::adam, arg("values").noconvert(), arg("first").noconvert(), arg("second").noconvert(),
           arg("gradient").noconvert(), arg("learning_rate"), arg("steps"), arg("penalty").noconvert() = py::none())
      .def("train_by_logits", &Core::train_by_logits, arg("rows").noconvert(), arg("keys").noconvert(), arg("logits").noconvert(),
           arg("by_logits"), arg("values").noconvert(), arg("first").noconvert(), arg("second").noconvert(), arg("learning_rate"),
           arg("steps"), arg("table").noconvert() = py::none())
      .def("train_along", &Core::train_along, arg("rows").noconvert(), arg("targets").noconvert(), arg("weights").noconvert(),
           arg("sizes"), arg("keys").noconvert(), arg("memories").noconvert(), arg("memory_gradients").noconvert(), arg("direction"),
           arg("values").noconvert(), arg("first").noconvert(), arg("second").noconvert(), arg("learning_rate"), arg("steps"))
      .def("train_epoch", &Core::train_epoch, arg("rows").noconvert(), arg("targets").noconvert(), arg("factors").noconvert(),
           arg("order").noconvert(), arg("task_size"), arg("batch_size"), arg("keys").noconvert(), arg("first").noconvert(),
           arg("second").noconvert(), arg("learning_rate"), arg("steps"), arg("penalty").noconvert(), arg("beta").noconvert(), arg("beta_first").noconvert(),
           arg("beta_second").noconvert(), arg("beta_penalty"), arg("beta_learning_rate"), arg("beta_steps"));
}
