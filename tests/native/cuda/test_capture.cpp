#include <gtest/gtest.h>

#include <vector>

#include "core/error.hpp"
#include "cuda/capture.hpp"
#include "cuda/driver_error.hpp"

namespace ferry::cuda {
namespace {

// A driver that knows captures only.
struct Captures {
  static inline int mode = 0;  // of the thread; 0 is global
  static inline std::vector<int> modes;
  static inline CUresult answer = success;
  static inline int status = 0;

  static CUresult exchange(int* given) {
    if (answer != success) return answer;
    std::swap(mode, *given);
    modes.push_back(mode);
    return success;
  }
  static CUresult is_capturing(CUstream, int* out) {
    *out = status;
    return answer;
  }
};

class Capture : public ::testing::Test {
 protected:
  Capture() {
    Captures::mode = 0;
    Captures::modes.clear();
    Captures::answer = success;
    Captures::status = 0;
    functions_.cuThreadExchangeStreamCaptureMode = Captures::exchange;
    functions_.cuStreamIsCapturing = Captures::is_capturing;
  }
  [[nodiscard]] CaptureState state() const { return capture_state(functions_, nullptr); }

  Functions functions_;
};

TEST_F(Capture, IsRelaxedForAWhileAndAsItWasAfterwards) {
  Captures::mode = 1;
  {
    const RelaxedCapture relaxed(functions_);
    EXPECT_TRUE(relaxed.relaxed());
    EXPECT_EQ(Captures::mode, 2);
  }
  EXPECT_EQ(Captures::mode, 1);
}

TEST_F(Capture, StaysRelaxedWhereItWas) {
  Captures::mode = 2;
  {
    const RelaxedCapture relaxed(functions_);
  }
  EXPECT_EQ(Captures::modes, (std::vector<int>{2, 2}));
}

TEST_F(Capture, NestsLikeScopes) {
  {
    const RelaxedCapture outer(functions_);
    {
      const RelaxedCapture inner(functions_);
    }
    EXPECT_EQ(Captures::mode, 2);
  }
  EXPECT_EQ(Captures::mode, 0);
}

TEST_F(Capture, ThrowsWhereTheDriverRefusesAndChangesNothing) {
  Captures::answer = 999;
  EXPECT_THROW(const RelaxedCapture relaxed(functions_), Error);
  EXPECT_TRUE(Captures::modes.empty());
}

TEST_F(Capture, DestructorsLearnOfTheRefusalWithoutAThrow) {
  Captures::answer = 999;
  const RelaxedCapture relaxed(functions_, std::nothrow);
  EXPECT_FALSE(relaxed.relaxed());
  EXPECT_TRUE(Captures::modes.empty());
}

TEST_F(Capture, ReportsAModeThatCannotBePutBack) {
  const CleanupReport before = cleanup_report();
  {
    const RelaxedCapture relaxed(functions_);
    Captures::answer = 999;
  }
  EXPECT_EQ(cleanup_report().failures, before.failures + 1);
}

TEST_F(Capture, StateIsWhatTheDriverSays) {
  EXPECT_EQ(state(), CaptureState::none);
  Captures::status = 1;
  EXPECT_EQ(state(), CaptureState::active);
  Captures::status = 2;
  EXPECT_EQ(state(), CaptureState::invalidated);
}

TEST_F(Capture, StateOfTheLegacyStreamBesideABlockingCaptureIsNoError) {
  Captures::answer = 906;
  EXPECT_EQ(state(), CaptureState::implicit);
}

TEST_F(Capture, StateThrowsOtherAnswers) {
  Captures::answer = 400;
  EXPECT_THROW(static_cast<void>(state()), Error);
}

}  // namespace
}  // namespace ferry::cuda
