// Where questions are asked: a driver, its first device's primary context (current between questions), and long work.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "code.hpp"
#include "library.hpp"
#include "question.hpp"

namespace ferry::litmus {

struct LabOptions {
  std::string library;
  std::vector<std::string> presets;  // of the fake driver
  std::string schedule;              // of the fake driver; empty for its own choice
  double long_work_ms = 30;          // how long the device is kept busy where overlap is to be seen
};

// What can be seen only before the driver is initialised, or right after.
struct FirstAnswers {
  cuda::CUresult version_before_init = 0;
  cuda::CUresult count_before_init = 0;
  std::string error_name_before_init;
  bool context_current_after_init = false;
  bool primary_active_after_init = false;
  cuda::CUresult release_of_unretained = 0;
};

class Lab {
 public:
  // Throws std::runtime_error where there is no driver or no device to work with.
  explicit Lab(const LabOptions& options);
  ~Lab();
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;

  [[nodiscard]] const Driver& driver() const { return library_.driver(); }
  [[nodiscard]] const Library& library() const { return library_; }
  [[nodiscard]] const FirstAnswers& first() const { return first_; }
  [[nodiscard]] int version() const { return version_; }
  [[nodiscard]] cuda::CUdevice device() const { return device_; }
  [[nodiscard]] cuda::CUcontext context() const { return context_; }
  [[nodiscard]] int device_count() const { return device_count_; }
  [[nodiscard]] bool is_fake() const { return library_.exported("fake_reset") != nullptr; }
  // One line: version, device, and "the fake driver" where it is that.
  [[nodiscard]] std::string description() const;

  // Keeps `stream` busy for a while. Enqueues copies on the device and returns at once.
  void work_long(cuda::CUstream stream);
  // Waits for all work of the context.
  void settle() const;
  // Calls `run` in another thread in which the context is current, and gives what it gives.
  std::string in_another_thread(const std::function<std::string()>& run) const;
  // What a question has left behind, empty if nothing: contexts, and on the fake driver whatever it counts.
  [[nodiscard]] std::string left_behind();
  // After the primary context was reset: everything in it is gone.
  void forget_context() { context_ = nullptr; }

  // Throws Unprepared unless `code` is success.
  void must(cuda::CUresult code, const char* what) const;
  // Throws NotAsked where the driver lacks this function.
  template <class Function>
  void need(Function* function, const char* name) const {
    if (function == nullptr) throw NotAsked(std::string("this driver has no ") + name);
  }

 private:
  void initialise();
  void prepare_long_work(double ms);
  [[nodiscard]] std::vector<long> counts() const;

  Library library_;
  FirstAnswers first_;
  int version_ = 0, device_count_ = 0;
  cuda::CUdevice device_ = 0;
  cuda::CUcontext context_ = nullptr;
  cuda::CUdeviceptr long_buffer_ = 0;
  std::size_t long_nbytes_ = 0;
  int long_count_ = 1;
  std::vector<long> baseline_;
};

}  // namespace ferry::litmus
