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
  const auto exact = [](const char* name) { return arg(name).noconvert(); };  // an array is not copied to fit
  module.doc() = "The paper's network on a CPU: gradients, predictions, Adam and whole epochs. See kernels.hpp.";
  module.def("variants", [] {
    std::vector<std::string> names;
    for (const Kernels* kernels : runnable_kernels()) names.emplace_back(kernels->name);
    return names;
  });
  module.def("frame_statistics", &statistics_of<std::int16_t>, exact("stored"));
  module.def("frame_statistics", &statistics_of<float>, exact("stored"));
  module.def("gather", &gather, exact("stored"), exact("gain"), exact("offset"), exact("rows"));
  py::class_<Core>(module, "Core")
      .def(py::init<const std::string&, bool, int, Floats, Floats, std::vector<Floats>, std::vector<Floats>, const py::array&,
                    std::optional<Floats>, std::optional<Floats>>(),
           arg("variant"), arg("softmax"), arg("outputs"), exact("parameters"), exact("gradient"), exact("means"), exact("variances"),
           arg("frames"), exact("gain"), exact("offset"))
      .def("gradient", &Core::gradient, exact("rows"), exact("targets"), exact("weights"), exact("draws"), exact("keys"), arg("running"),
           arg("track"), exact("losses"), exact("frames") = py::none())
      .def("forward", &Core::forward, exact("rows"), exact("draws"), exact("keys"), arg("running"), arg("track"), exact("logits"),
           exact("frames") = py::none())
      .def("backward", &Core::backward, exact("by_logits"), exact("gradient") = py::none())
      .def("loss_by_logits", &Core::loss_by_logits, exact("logits"), exact("targets"), exact("weights"), exact("losses"),
           exact("by_logits"))
      .def("sum_of_each", &Core::sum_of_each, exact("rows"), exact("by_logits"), arg("absolute"), exact("sums"))
      .def("predict", &Core::predict, exact("rows"), exact("noise"), exact("parameters"), arg("probabilities"), arg("samples"),
           exact("keys"), exact("result"), exact("frames") = py::none())
      .def("adam", &Core::adam, exact("adam"), exact("gradient"), exact("penalty") = py::none())
      .def("train_by_logits", &Core::train_by_logits, exact("rows"), exact("keys"), exact("logits"), arg("by_logits"), exact("adam"),
           exact("table") = py::none())
      .def("train_along", &Core::train_along, exact("rows"), exact("targets"), exact("weights"), arg("sizes"), exact("keys"),
           exact("memories"), exact("memory_gradients"), arg("direction"), exact("adam"))
      .def("train_epoch", &Core::train_epoch, exact("rows"), exact("targets"), exact("factors"), exact("order"), arg("sizes"),
           arg("task_size"), exact("keys"), exact("adam"), exact("penalty") = py::none(), exact("beta") = py::none(),
           arg("beta_penalty") = 0.0f);
}
