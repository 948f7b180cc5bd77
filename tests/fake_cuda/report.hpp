// What tests read afterwards: the trace of calls, the violations, counters.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "types.hpp"

namespace fake {

struct Report {
  std::vector<std::string> trace;
  std::vector<std::string> violations;
  std::vector<std::string> requests;           ///< "name version flags", one for each symbol asked for
  std::map<std::string, std::int64_t> counts;  ///< busy_waits, blocking_waits, queries, ...

  /// Something the documentation forbids. Recorded, never fatal; once for each text.
  void violation(const std::string& text);
  void clear() { *this = {}; }
};

/// True while the calling thread says it is the test, not the product: its calls are marked in the trace and may do
/// what the product must not (pageable copies, NULL streams).
bool& caller_is_test();

/// Name and arguments of what the calling thread asked of the driver last.
std::string& current_call();

/// Write lines into a C buffer, always ended by NUL; returns the size that all of it needs, NUL included.
std::size_t give_lines(const std::vector<std::string>& lines, char* out, std::size_t size);

/// Text such as "bytes=64 stream=stream#1" from pairs.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::string all;
  const auto add = [&](const auto& part) {
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(part)>>) {
      all += std::to_string(part);
    } else {
      all += part;
    }
  };
  (add(parts), ...);
  return all;
}

}  // namespace fake
