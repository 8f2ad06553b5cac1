// The Python module clops_sweep.native._kernels.
#include "core.hpp"
#include "eviction.hpp"
#include "frame_statistics.hpp"
#include "trained_program.hpp"

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
Floats signals_of(const Array<std::int16_t>& stored, const Floats& gain, const Floats& offset, const Longs& rows) {
  require(stored.ndim() == 2 && rows.ndim() == 1, "frames must be [m, samples], and rows [n]");
  const StoredFrames frames(stored, gain, offset, 1, static_cast<std::size_t>(stored.shape(1)));
  const Instances instances = frames.at(rows);
  Floats found({rows.size(), stored.shape(1)});
  gather(instances.frames, instances.rows, static_cast<std::size_t>(instances.count), frames.samples(), found.mutable_data());
  return found;
}

// Positions to keep of a memory, [min(m, capacity)]: see eviction.hpp.
Longs positions_to_keep(const Array<double>& priorities, const Longs& groups, std::int64_t capacity) {
  require(priorities.ndim() == 1 && groups.ndim() == 1 && groups.size() == priorities.size(), "priorities and groups must be [m]");
  require(capacity >= 0, "a capacity must be 0 or more");
  const std::vector<std::int64_t> positions =
      kept(priorities.data(), groups.data(), static_cast<std::size_t>(priorities.size()), static_cast<std::size_t>(capacity));
  return Longs(static_cast<py::ssize_t>(positions.size()), positions.data());
}

}  // namespace clops

PYBIND11_MODULE(_kernels, module) {
  using namespace clops;
  using py::arg;
  const auto exact = [](const char* name) { return arg(name).noconvert(); };  // an array is not copied to fit
  module.doc() = "Networks on a CPU: gradients, predictions, steps and whole epochs. See kernels.hpp and programs.hpp.";
  module.def("variants", [] {
    std::vector<std::string> names;
    for (const Kernels* kernels : runnable_kernels()) names.emplace_back(kernels->name);
    return names;
  });
  module.def("frame_statistics", &statistics_of<std::int16_t>, exact("stored"));
  module.def("frame_statistics", &statistics_of<float>, exact("stored"));
  module.def("gather", &signals_of, exact("stored"), exact("gain"), exact("offset"), exact("rows"));
  module.def("kept", &positions_to_keep, exact("priorities"), exact("groups"), arg("capacity"));
  py::class_<Trainable>(module, "Trainable")
      .def("gradient", &Trainable::gradient, exact("rows"), exact("targets"), exact("weights"), exact("draws"), exact("keys"),
           arg("running"), arg("track"), exact("losses"), exact("frames") = py::none())
      .def("forward", &Trainable::forward, exact("rows"), exact("draws"), exact("keys"), arg("running"), arg("track"), exact("logits"),
           exact("frames") = py::none())
      .def("backward", &Trainable::backward, exact("by_logits"), exact("gradient") = py::none())
      .def("loss_by_logits", &Trainable::loss_by_logits, exact("logits"), exact("targets"), exact("weights"), exact("losses"),
           exact("by_logits"))
      .def("step", &Trainable::step, exact("optimizer"), exact("gradient"), exact("penalty") = py::none())
      .def("train_by_logits", &Trainable::train_by_logits, exact("rows"), exact("keys"), exact("logits"), arg("by_logits"),
           exact("optimizer"), exact("table") = py::none())
      .def("train_along", &Trainable::train_along, exact("rows"), exact("targets"), exact("weights"), arg("sizes"), exact("keys"),
           exact("memories"), exact("memory_gradients"), arg("direction"), exact("optimizer"))
      .def("train_epoch", &Trainable::train_epoch, exact("rows"), exact("targets"), exact("factors"), exact("order"), arg("sizes"),
           arg("task_size"), exact("keys"), exact("optimizer"), exact("penalty") = py::none(), exact("beta") = py::none(),
           arg("beta_penalty") = 0.0f);
  py::class_<Core, Trainable>(module, "Core")
      .def(py::init<const std::string&, bool, int, Floats, Floats, std::vector<Floats>, std::vector<Floats>, const py::array&,
                    std::optional<Floats>, std::optional<Floats>>(),
           arg("variant"), arg("softmax"), arg("outputs"), exact("parameters"), exact("gradient"), exact("means"), exact("variances"),
           arg("frames"), exact("gain"), exact("offset"))
      .def("sum_of_each", &Core::sum_of_each, exact("rows"), exact("by_logits"), arg("absolute"), exact("sums"))
      .def("predict", &Core::predict, exact("rows"), exact("noise"), exact("parameters"), arg("probabilities"), arg("samples"),
           exact("keys"), exact("result"), exact("frames") = py::none());
  py::class_<NetworkProgram>(module, "Program")
      .def(py::init<const std::string&, const std::vector<py::dict>&, std::tuple<int, int, int>, Floats, std::vector<Floats>>(), arg("variant"),
           arg("layers"), arg("shape"), exact("parameters"), exact("buffers"))
      .def_property_readonly("outputs", &NetworkProgram::outputs)
      .def_property_readonly("output_shape", &NetworkProgram::output_shape)
      .def("forward", &NetworkProgram::forward, exact("frames"), exact("keys"), exact("draws"), arg("batch_statistics"), arg("track"),
           exact("logits"))
      .def("backward", &NetworkProgram::backward, exact("by_logits"), exact("gradient"), arg("add") = false)
      .def("predict", &NetworkProgram::predict, exact("frames"), exact("parameters"), arg("samples"), exact("keys"), exact("logits"),
           arg("first") = 0)
      .def("sum_of_instance_gradients", &NetworkProgram::sum_of_instance_gradients, exact("frames"), exact("by_logits"),
           arg("absolute"), exact("sums"));
  py::class_<TrainedProgram, Trainable>(module, "TrainedProgram")
      .def(py::init<const NetworkProgram&, bool, Floats, const py::array&, std::optional<Floats>, std::optional<Floats>>(),
           py::keep_alive<1, 2>(), arg("program"), arg("softmax"), exact("gradient"), arg("frames"), exact("gain"), exact("offset"));
}
