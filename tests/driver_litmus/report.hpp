// What came out, as a table and as JSON.
#pragma once

#include <string>

#include "runner.hpp"

namespace ferry::litmus {

struct Tally {
  std::size_t agrees = 0, differs = 0, not_asked = 0;
};
[[nodiscard]] Tally tally(const Run& run);

// One line a question; with `differences_only`, those alone. Ends with a line that counts.
[[nodiscard]] std::string table(const Run& run, bool differences_only);
[[nodiscard]] std::string json(const Run& run);

}  // namespace ferry::litmus
