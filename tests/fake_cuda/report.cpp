#include "report.hpp"

#include <algorithm>
#include <cstring>

namespace fake {

void Report::violation(const std::string& text) {
  if (std::find(violations.begin(), violations.end(), text) == violations.end()) violations.push_back(text);
}

bool& caller_is_test() {
  static thread_local bool is_test = false;
  return is_test;
}

std::string& current_call() {
  static thread_local std::string call;
  return call;
}

std::size_t give_lines(const std::vector<std::string>& lines, char* out, std::size_t size) {
  std::string all;
  for (const auto& line : lines) all += line + "\n";
  if (out != nullptr && size > 0) {
    const auto n = std::min(size - 1, all.size());
    std::memcpy(out, all.data(), n);
    out[n] = '\0';
  }
  return all.size() + 1;
}

}  // namespace fake
