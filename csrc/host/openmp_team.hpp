// The worker threads of an OpenMP runtime that is already in the process.
#pragma once

#include <string>

namespace ferry {

// Finds GNU's OpenMP runtime among the libraries loaded from below `directory`, if there is one, and works with its
// threads from now on: those that torch uses are awake just after torch has worked, while threads of our own would
// compete with them for the same cores.
void join_openmp_team(const std::string& directory);

// Calls work(context, number) on `threads` threads at once, the caller's being one and number 0, and returns when all
// have returned. False, having called nothing, where no team was joined, and in a forked child, which has no threads of
// the team.
[[nodiscard]] bool run_on_openmp_team(int threads, void (*work)(void* context, int number), void* context) noexcept;

[[nodiscard]] bool has_openmp_team() noexcept;

}  // namespace ferry
