// Runs something in a forked child and brings back what it says.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

namespace ferry::cuda::test {

// `run()` returns a string; a child that dies returns "died".
template <class Run>
std::string in_child(Run run) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string said = run();
    std::size_t written = 0;
    while (written < said.size()) {
      const ssize_t more = ::write(ends[1], said.data() + written, said.size() - written);
      if (more <= 0) ::_exit(1);
      written += static_cast<std::size_t>(more);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string said;
  std::array<char, 4096> buffer{};
  for (ssize_t count = 0; (count = ::read(ends[0], buffer.data(), buffer.size())) > 0;) {
    said.append(buffer.data(), static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? said : "died";
}

}  // namespace ferry::cuda::test
