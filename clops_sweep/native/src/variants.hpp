// The compiled variants, and those that this CPU can run.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "kernels.hpp"

namespace clops {

namespace baseline {
extern const Kernels kernels;
}
#if defined(CLOPS_WITH_AVX2)
namespace avx2 {
extern const Kernels kernels;
}
#endif
#if defined(CLOPS_WITH_AVX512)
namespace avx512 {
extern const Kernels kernels;
}
#endif

// Best first; never empty.
inline std::vector<const Kernels*> runnable_kernels() {
  std::vector<const Kernels*> found;
#if defined(CLOPS_WITH_AVX512)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma")) {
    found.push_back(&avx512::kernels);
  }
#endif
#if defined(CLOPS_WITH_AVX2)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back(&avx2::kernels);
#endif
  found.push_back(&baseline::kernels);
  return found;
}

inline const Kernels& variant(const std::string& name) {
  for (const Kernels* kernels : runnable_kernels()) {
    if (name == kernels->name) return *kernels;
  }
  throw std::invalid_argument("this CPU cannot run the kernels '" + name + "'");
}

}  // namespace clops
