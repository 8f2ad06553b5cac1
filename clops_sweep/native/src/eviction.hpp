// Eviction from a memory of fixed size: see `kept` in learning/replay/division.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace clops {

// Consecutive entries of a sorted list that belong to one group.
struct Group {
  std::size_t first, size, kept;
};

// Sets how many entries of each group are kept: small groups whole, and equal shares of the others; of what is left
// over, the first of these get one more.
inline void share(std::vector<Group>& groups, std::size_t capacity) {
  std::vector<std::size_t> sizes;
  for (const Group& group : groups) sizes.push_back(group.size);
  std::sort(sizes.begin(), sizes.end());
  std::size_t level = 0, rest = capacity, larger = sizes.size();
  for (const std::size_t size : sizes) {  // raises the level of all groups that are at least as large
    const std::size_t needed = (size - level) * larger;
    if (needed > rest) break;
    rest -= needed;
    level = size;
    --larger;
  }
  const std::size_t more = larger ? rest / larger : 0;
  std::size_t remainder = larger ? rest % larger : 0;
  for (Group& group : groups) {
    group.kept = std::min(group.size, level);
    if (group.size <= level) continue;
    group.kept += more;
    if (!remainder) continue;
    ++group.kept;
    --remainder;
  }
}

// The ascending positions of the entries to keep: of each group those with the highest priorities. Ties go to the lower
// position; nan is the lowest priority.
inline std::vector<std::int64_t> kept(const double* priorities, const std::int64_t* groups, std::size_t count, std::size_t capacity) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto comes_first = [&](std::size_t one, std::size_t other) {
    if (groups[one] != groups[other]) return groups[one] < groups[other];
    const bool one_is_nan = std::isnan(priorities[one]), other_is_nan = std::isnan(priorities[other]);
    if (one_is_nan != other_is_nan) return other_is_nan;
    if (priorities[one] != priorities[other] && !one_is_nan) return priorities[one] > priorities[other];
    return one < other;
  };
  std::sort(order.begin(), order.end(), comes_first);
  std::vector<Group> parts;
  for (std::size_t place = 0; place < count; ++place) {
    if (!place || groups[order[place]] != groups[order[place - 1]]) parts.push_back({place, 0, 0});
    ++parts.back().size;
  }
  share(parts, capacity);
  std::vector<std::int64_t> result;
  for (const Group& part : parts) {
    for (std::size_t place = part.first; place < part.first + part.kept; ++place) result.push_back(static_cast<std::int64_t>(order[place]));
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace clops
