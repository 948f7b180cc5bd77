// The control functions of a stub library, and what a test wants to know about a driver that is none.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "cuda/driver.hpp"

namespace ferry::cuda::test {

class Stub {
 public:
  explicit Stub(const char* path) : library_(::dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(library_, nullptr) << path;
    set(12040);
  }
  ~Stub() { ::dlclose(library_); }
  Stub(const Stub&) = delete;
  Stub& operator=(const Stub&) = delete;

  // What cuDriverGetVersion says, what every function answers, what cuGetProcAddress answers, and the names that it
  // answers with success and NULL.
  void set(int version, CUresult answer = success, CUresult lookup = success, const char* absent = "") {
    function<void (*)(int, int, int, const char*)>("stub_set")(version, answer, lookup, absent);
  }
  [[nodiscard]] std::string requests() const { return function<const char* (*)()>("stub_requests")(); }
  [[nodiscard]] int calls() const { return function<int (*)()>("stub_calls")(); }
  // Does every function keep its caller waiting?
  void hold(bool held) { function<void (*)(int)>("stub_hold")(held ? 1 : 0); }

 private:
  template <class Function>
  Function function(const char* name) const {
    return reinterpret_cast<Function>(::dlsym(library_, name));
  }
  void* library_;
};

inline Unusable kind_of(const OpenedDriver& opened) {
  EXPECT_TRUE(opened.problem.has_value());
  return opened.problem.value().kind;
}

inline std::string words_of(const OpenedDriver& opened) {
  return opened.problem ? opened.problem->error().what() : "usable";
}

}  // namespace ferry::cuda::test
