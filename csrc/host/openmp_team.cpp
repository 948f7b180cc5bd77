#include "host/openmp_team.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <fstream>

namespace ferry {
namespace {

// What compilers make of "#pragma omp parallel"; a stable entry point of libgomp.
using Parallel = void (*)(void (*work)(void*), void* context, unsigned threads, unsigned flags);

using ThreadNumber = int (*)();

std::atomic<Parallel> parallel{nullptr};
std::atomic<ThreadNumber> thread_number{nullptr};

struct Work {
  void (*run)(void* context, int number);
  void* context;
};

// The path of libgomp as /proc/self/maps has it; empty where it is not loaded from below `directory`.
std::string loaded_runtime(const std::string& directory) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const auto start = line.find('/');
    if (start == std::string::npos) continue;
    const std::string path = line.substr(start);
    if (path.starts_with(directory) && path.find("/libgomp") != std::string::npos) return path;
  }
  return {};
}

}  // namespace

void join_openmp_team(const std::string& directory) {
  if (has_openmp_team()) return;
  const std::string path = loaded_runtime(directory);
  if (path.empty()) return;
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);  // kept: torch never unloads it either
  if (library == nullptr) return;
  void* found = dlsym(library, "GOMP_parallel");
  void* number = dlsym(library, "omp_get_thread_num");
  if (found == nullptr || number == nullptr) return;
  thread_number.store(reinterpret_cast<ThreadNumber>(number), std::memory_order_relaxed);
  static const int registered = pthread_atfork(nullptr, nullptr, [] { parallel.store(nullptr); });
  static_cast<void>(registered);
  parallel.store(reinterpret_cast<Parallel>(found), std::memory_order_release);
}

bool run_on_openmp_team(int threads, void (*work)(void* context, int number), void* context) noexcept {
  const Parallel run = parallel.load(std::memory_order_acquire);
  if (run == nullptr) return false;
  Work shared{work, context};
  run(
      [](void* given) {
        const auto& each = *static_cast<const Work*>(given);
        each.run(each.context, thread_number.load(std::memory_order_relaxed)());
      },
      &shared, static_cast<unsigned>(threads), 0);
  return true;
}

bool has_openmp_team() noexcept { return parallel.load(std::memory_order_relaxed) != nullptr; }

}  // namespace ferry
