// The product on the fake driver: control functions by name, and a fixture that checks what is left behind.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cuda/primary_contexts.hpp"

namespace ferry::cuda::test {

inline void* fake_symbol(const char* name) {
  static void* const library = ::dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : ::dlsym(library, name);
}

// A control function, e.g. fake<void(int)>("fake_use_device")(0).
template <class Signature>
Signature* fake(const char* name) {
  void* const found = fake_symbol(name);
  EXPECT_NE(found, nullptr) << name;
  return reinterpret_cast<Signature*>(found);
}

inline std::string fake_text(const char* name) {
  const auto give = fake<std::size_t(char*, std::size_t)>(name);
  std::string text(give(nullptr, 0), '\0');
  give(text.data(), text.size());
  text.resize(text.empty() ? 0 : text.size() - 1);
  return text;
}

inline std::int64_t live(const char* what) { return fake<std::int64_t(const char*)>("fake_live")(what); }
inline void use_device(int device) { fake<void(int)>("fake_use_device")(device); }
inline void hold_work(bool held) { fake<void(int)>("fake_hold")(held ? 1 : 0); }
inline void fail(const char* call, std::int64_t nth, CUresult code, bool after_acceptance = false) {
  fake<void(const char*, std::int64_t, int, int)>("fake_fault")(call, nth, code, after_acceptance ? 1 : 0);
}
inline void clear_faults() { fake<void()>("fake_clear_faults")(); }

// The product's calls since the last forget_calls(), one a line: a name and what matters of its arguments.
inline std::vector<std::string> calls() {
  std::vector<std::string> lines;
  std::istringstream text(fake_text("fake_trace"));
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("test: ")) lines.push_back(line);
  }
  return lines;
}
inline void forget_calls() { fake<void()>("fake_clear_trace")(); }

inline int count_of(const std::string& name) {
  int count = 0;
  for (const std::string& line : calls()) count += line == name || line.starts_with(name + " ") ? 1 : 0;
  return count;
}

inline std::vector<std::string> names_of_calls() {
  std::vector<std::string> names;
  for (const std::string& line : calls()) names.push_back(line.substr(0, line.find(' ')));
  return names;
}

// A function of the driver that the product does not use.
template <class Signature>
Signature* driver_function(const char* name, int version) {
  void* found = nullptr;
  int status = 0;
  fake<int(const char*, void**, int, std::uint64_t, int*)>("cuGetProcAddress_v2")(name, &found, version, 1, &status);
  EXPECT_NE(found, nullptr) << name;
  return reinterpret_cast<Signature*>(found);
}

// What somebody else in the process does with the driver.
template <class Run>
void as_somebody_else(Run run) {
  const auto caller_is_test = fake<int(int)>("fake_caller_is_test");
  const int before = caller_is_test(1);
  run();
  caller_is_test(before);
}

inline void reset_device(int device) {
  as_somebody_else([device] { driver_function<int(int)>("cuDevicePrimaryCtxReset", 11000)(device); });
}

class OnFakeDriver : public ::testing::Test {
 protected:
  void SetUp() override {
    fake<void()>("fake_reset")();
    fake<int(const char*, std::uint64_t)>("fake_schedule")("lazy", 0);
  }

  // What a test has made must be gone by now; only the framework's contexts may stay.
  void TearDown() override {
    EXPECT_EQ(fake_text("fake_violations"), "");
    for (const char* what : {"events", "streams", "host_registrations", "pushed_contexts"})
      EXPECT_EQ(live(what), 0) << what;
    fake<void()>("fake_reset")();
  }

  // The driver of a machine of these presets, initialised.
  Driver& start(std::initializer_list<const char*> presets = {}) {
    for (const char* preset : presets) EXPECT_EQ(fake<int(const char*)>("fake_preset")(preset), 1) << preset;
    opened_ = Driver::open(FAKE_CUDA);
    if (opened_.problem) throw opened_.problem->error();
    if (const auto problem = opened_.driver->initialise()) throw problem->error();
    forget_calls();
    return *opened_.driver;
  }

 private:
  OpenedDriver opened_;
};

// A fixture on one device whose context is active and current, as where a framework has used it.
class OnFakeDevice : public OnFakeDriver {
 protected:
  void SetUp() override { begin({}); }
  void begin(std::initializer_list<const char*> presets) {
    OnFakeDriver::SetUp();
    driver_ = &start(presets);
    primaries_ = std::make_unique<PrimaryContexts>(*driver_);
    use_device(0);
  }
  void TearDown() override {
    primaries_.reset();
    OnFakeDriver::TearDown();
  }

  [[nodiscard]] ContextScope scope(int device = 0) { return {*driver_, *primaries_, device, Primary::if_active}; }
  [[nodiscard]] const Functions& functions() const { return driver_->functions(); }

  Driver* driver_ = nullptr;
  std::unique_ptr<PrimaryContexts> primaries_;
};

// The message of the Error that `run` throws; "nothing" where it throws none.
template <class Run>
std::string error_of(Run run) {
  try {
    run();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    return error.what();
  }
  return "nothing";
}

}  // namespace ferry::cuda::test
