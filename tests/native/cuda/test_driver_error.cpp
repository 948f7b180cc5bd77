#include <gtest/gtest.h>

#include "cuda/driver_error.hpp"

namespace ferry::cuda {
namespace {

CUresult name_of(CUresult code, const char** text) {
  *text = code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : nullptr;
  return *text == nullptr ? result::invalid_value : success;
}

CUresult text_of(CUresult code, const char** text) {
  *text = code == 700 ? "an illegal memory access was encountered" : code == 2 ? "out of memory" : nullptr;
  return *text == nullptr ? result::invalid_value : success;
}

Functions speaking() {
  Functions functions;
  functions.cuGetErrorName = name_of;
  functions.cuGetErrorString = text_of;
  return functions;
}

TEST(DriverError, SpeaksTheDriversOwnWords) {
  const Error error = driver_error(speaking(), 2, "cuMemHostRegister");
  EXPECT_EQ(error.kind(), ErrorKind::device);
  EXPECT_EQ(error.given(), "cuMemHostRegister");
  EXPECT_EQ(error.why(), "the driver answered 2, CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
  EXPECT_EQ(error.instead(), "free device or pinned memory, or move less at a time");
}

TEST(DriverError, NamesAnEarlierOperationForErrorsThatStay) {
  const Error error = driver_error(speaking(), 700, "cuEventQuery");
  EXPECT_EQ(error.why(),
            "an earlier operation on this device failed: the driver answered 700, CUDA_ERROR_ILLEGAL_ADDRESS (an "
            "illegal memory access was encountered)");
  EXPECT_NE(error.instead().find("CUDA_LAUNCH_BLOCKING=1"), std::string::npos);
  EXPECT_NE(error.instead().find("start a new process"), std::string::npos);
}

TEST(DriverError, StandsAloneWhereTheDriverHasNoWords) {
  EXPECT_EQ(driver_error(speaking(), 12345, "cuX").why(), "the driver answered 12345");
  EXPECT_EQ(driver_error(Functions{}, 12345, "cuX").why(), "the driver answered 12345");
}

TEST(DriverError, NamesTheEndOfTheProcess) {
  EXPECT_TRUE(driver_error(speaking(), 4, "cuX").why().starts_with("the process is ending"));
}

TEST(DriverError, SendsGraphCapturesAway) {
  for (const CUresult code : {900, 901, 906, 907, 908}) {
    EXPECT_NE(driver_error(speaking(), code, "cuX").instead().find("graph capture"), std::string::npos) << code;
  }
}

TEST(DriverError, KnowsWhichErrorsStay) {
  // Those of cuda.h that say "inconsistent state", "must be terminated" or "cannot be used anymore".
  for (const CUresult code : {214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810}) {
    EXPECT_TRUE(is_sticky(code)) << code;
  }
  for (const CUresult code : {0, 1, 2, 3, 4, 100, 201, 400, 600, 701, 711, 712, 713, 720, 800, 801, 900, 907, 999}) {
    EXPECT_FALSE(is_sticky(code)) << code;
  }
}

TEST(DriverError, IsThrownUnlessTheAnswerIsSuccess) {
  EXPECT_NO_THROW(check(speaking(), success, "cuX"));
  EXPECT_THROW(check(speaking(), 2, "cuX"), Error);
}

TEST(DriverError, CleanupIsCountedAndTheEndOfTheProcessIsNone) {
  const CleanupReport before = cleanup_report();
  report_cleanup(success, "cuEventDestroy");
  report_cleanup(result::deinitialized, "cuEventDestroy");
  EXPECT_EQ(cleanup_report().failures, before.failures);
  report_cleanup(719, "cuStreamDestroy");
  EXPECT_EQ(cleanup_report().failures, before.failures + 1);
  EXPECT_EQ(cleanup_report().last_code, 719);
  EXPECT_STREQ(cleanup_report().last_call, "cuStreamDestroy");
}

}  // namespace
}  // namespace ferry::cuda
