#include <sstream>

#include "stub.hpp"

namespace ferry::cuda {
namespace {

using test::kind_of;
using test::Stub;
using test::words_of;

TEST(DriverOpen, SaysWhichLibraryIsMissingAndWhatTheLoaderSays) {
  const OpenedDriver opened = Driver::open("/nowhere/libcuda.so.1");
  EXPECT_EQ(kind_of(opened), Unusable::missing_library);
  EXPECT_EQ(opened.driver, nullptr);
  EXPECT_EQ(opened.problem->given, "the driver library /nowhere/libcuda.so.1");
  EXPECT_NE(opened.problem->why.find("No such file or directory"), std::string::npos) << opened.problem->why;
  EXPECT_NE(opened.problem->instead.find("driver 525"), std::string::npos);
  EXPECT_EQ(opened.problem->error().kind(), ErrorKind::device);
}

TEST(DriverOpen, RefusesALibraryWithoutAnEntryPoint) {
  const Stub stub(STUB_DRIVER_NONE);
  EXPECT_EQ(kind_of(Driver::open(STUB_DRIVER_NONE)), Unusable::no_entry_point);
}

TEST(DriverOpen, AsksAnOldDriverByItsFourArgumentsAndNamesItsAge) {
  Stub stub(STUB_DRIVER_OLD);
  stub.set(11040);
  const OpenedDriver opened = Driver::open(STUB_DRIVER_OLD);
  EXPECT_EQ(kind_of(opened), Unusable::too_old);
  EXPECT_NE(words_of(opened).find("it supports CUDA 11.4, and 12.0 (driver 525) is the oldest"), std::string::npos)
      << words_of(opened);
  EXPECT_EQ(stub.requests(), "cuDriverGetVersion 2020 1\n");
}

TEST(DriverOpen, OpensByFourArgumentsWhereTheVersionSuffices) {
  const Stub stub(STUB_DRIVER_OLD);
  const OpenedDriver opened = Driver::open(STUB_DRIVER_OLD);
  ASSERT_NE(opened.driver, nullptr) << words_of(opened);
  EXPECT_EQ(opened.driver->version(), 12040);
}

TEST(DriverOpen, TakesTheFloorAndRefusesTheVersionBelow) {
  Stub stub(STUB_DRIVER);
  stub.set(12000);
  EXPECT_NE(Driver::open(STUB_DRIVER).driver, nullptr);
  stub.set(11080);
  EXPECT_EQ(kind_of(Driver::open(STUB_DRIVER)), Unusable::too_old);
}

TEST(DriverOpen, TakesSuccessWithoutAFunctionForAMissingFunction) {
  Stub stub(STUB_DRIVER);
  stub.set(12040, success, success, "cuCtxGetId");
  const OpenedDriver opened = Driver::open(STUB_DRIVER);
  EXPECT_EQ(kind_of(opened), Unusable::missing_function);
  EXPECT_NE(words_of(opened).find("it claims CUDA 12.4 but has no cuCtxGetId"), std::string::npos) << words_of(opened);
}

TEST(DriverOpen, RefusesALibraryThatFindsNothing) {
  Stub stub(STUB_DRIVER);
  stub.set(12040, success, result::not_found);
  EXPECT_EQ(kind_of(Driver::open(STUB_DRIVER)), Unusable::no_entry_point);
}

struct WrongInstallation {
  CUresult code;
  Unusable kind;
  const char* why;
  const char* instead;
};

class DriverOpenWrong : public ::testing::TestWithParam<WrongInstallation> {};

TEST_P(DriverOpenWrong, IsNamedWhenTheLookupSaysSo) {
  Stub stub(STUB_DRIVER);
  stub.set(12040, success, GetParam().code);
  const OpenedDriver opened = Driver::open(STUB_DRIVER);
  EXPECT_EQ(kind_of(opened), GetParam().kind);
  EXPECT_EQ(opened.problem->code, GetParam().code);
  EXPECT_NE(opened.problem->why.find(GetParam().why), std::string::npos) << opened.problem->why;
  EXPECT_NE(opened.problem->instead.find(GetParam().instead), std::string::npos) << opened.problem->instead;
}

TEST_P(DriverOpenWrong, IsNamedWhenTheVersionCannotBeAsked) {
  Stub stub(STUB_DRIVER);
  stub.set(12040, GetParam().code);
  EXPECT_EQ(kind_of(Driver::open(STUB_DRIVER)), GetParam().kind);
}

INSTANTIATE_TEST_SUITE_P(
    , DriverOpenWrong,
    ::testing::Values(WrongInstallation{34, Unusable::stub_library, "the toolkit's stub", "\"stubs\""},
                      WrongInstallation{803, Unusable::driver_mismatch, "another release", "restart"},
                      WrongInstallation{804, Unusable::unsupported_compat, "forward-compatibility", "\"compat\""}),
    [](const auto& wrong) { return "Code" + std::to_string(wrong.param.code); });

TEST(DriverOpen, CallsNothingButTheVersion) {
  const Stub stub(STUB_DRIVER);
  EXPECT_NE(Driver::open(STUB_DRIVER).driver, nullptr);
  EXPECT_EQ(stub.calls(), 0);
}

TEST(DriverOpen, HandsOutNoFunctionBeforeItIsInitialised) {
  const Stub stub(STUB_DRIVER);
  const OpenedDriver opened = Driver::open(STUB_DRIVER);
  EXPECT_EQ(opened.driver->functions_if_usable(), nullptr);
}

// Name, version and flags as DEVICE.md's table has them, written out: the number fixes the signature.
const char* const table =
    "cuInit 2000, cuDriverGetVersion 2020, cuGetErrorName 6000, cuGetErrorString 6000, cuDeviceGet 2000, "
    "cuDeviceGetCount 2000, cuDeviceGetAttribute 2000, cuDeviceGetUuid 11040, cuDeviceGetPCIBusId 4010, "
    "cuDevicePrimaryCtxGetState 7000, cuDevicePrimaryCtxRetain 7000, cuDevicePrimaryCtxRelease 11000, "
    "cuCtxGetCurrent 4000, cuCtxPushCurrent 4000, cuCtxPopCurrent 4000, cuCtxGetDevice 2000, cuCtxGetId 12000, "
    "cuStreamCreateWithPriority 5050, cuStreamDestroy 4000, cuStreamWaitEvent 3020, cuStreamQuery 2000, "
    "cuStreamGetCtx 9020, cuStreamIsCapturing 10000, cuStreamGetCaptureInfo 11030, "
    "cuThreadExchangeStreamCaptureMode 10010, cuEventCreate 2000, cuEventDestroy 4000, cuEventRecord 2000, "
    "cuEventRecordWithFlags 11010, cuEventQuery 2000, cuEventSynchronize 2000, cuMemHostRegister 6050, "
    "cuMemHostUnregister 4000, cuMemHostGetDevicePointer 3020, cuMemHostAlloc 2020, cuMemFreeHost 2000, "
    "cuPointerGetAttributes 7000, cuMemcpyDtoHAsync 3020, cuMemcpyHtoDAsync 3020, cuMemcpyDtoDAsync 3020, "
    "cuMemcpy2DAsync 3020, cuLibraryLoadData 12000, cuLibraryUnload 12000, cuLibraryGetKernel 12000, "
    "cuKernelGetFunction 12000, cuLaunchKernel 4000, cuFuncGetAttribute 2020, cuUserObjectCreate 11030, "
    "cuUserObjectRelease 11030, cuGraphRetainUserObject 11030, cuMemAllocAsync 11020, cuMemFreeAsync 11020, "
    "cuStreamWriteValue32 11070, cuCtxRecordEvent 12050, cuMemcpyBatchAsync 12080, cuMemcpyPeerAsync 4000, "
    "cuMemsetD8Async 3020, cuEventElapsedTime 2000, cuDeviceGetName 2000, ";

TEST(DriverOpen, RequestsEachFunctionByItsOwnVersionAndForTheLegacyStream) {
  Stub stub(STUB_DRIVER);
  stub.set(13000);  // the driver's own version is never the number to ask for
  ASSERT_NE(Driver::open(STUB_DRIVER).driver, nullptr);
  std::istringstream lines(stub.requests());
  std::string requested;
  std::string name;
  int version = 0;
  int flags = 0;
  std::string flagged_otherwise;
  while (lines >> name >> version >> flags) {
    const std::string entry = name + " " + std::to_string(version) + ", ";
    if (requested.find(entry) == std::string::npos) requested += entry;
    if (flags != 1) flagged_otherwise += name + " ";
  }
  // The version's own function is asked for first.
  const std::string first = "cuDriverGetVersion 2020, ";
  std::string expected(table);
  expected.erase(expected.find(first), first.size());
  EXPECT_EQ(requested, first + expected);
  EXPECT_EQ(flagged_otherwise, "");
}

class DriverOpenGroups : public ::testing::Test {
 protected:
  // The table of a driver without these functions.
  const Functions& without(const char* absent) {
    stub_.set(12040, success, success, absent);
    opened_ = Driver::open(STUB_DRIVER);
    EXPECT_NE(opened_.driver, nullptr) << words_of(opened_);
    EXPECT_FALSE(opened_.driver->initialise().has_value());
    return *opened_.driver->functions_if_usable();
  }

 private:
  Stub stub_{STUB_DRIVER};
  OpenedDriver opened_;
};

TEST_F(DriverOpenGroups, AllOptionalFunctionsAreThereWhereTheDriverHasThem) {
  const Functions& functions = without("");
  EXPECT_TRUE(functions.have_kernels());
  EXPECT_TRUE(functions.have_graphs());
  EXPECT_TRUE(functions.have_stream_memory());
  EXPECT_NE(functions.cuStreamWriteValue32, nullptr);
  EXPECT_NE(functions.cuDeviceGetName, nullptr);
}

TEST_F(DriverOpenGroups, KernelsAreAllOrNothing) {
  const Functions& functions = without("cuFuncGetAttribute");
  EXPECT_FALSE(functions.have_kernels());
  EXPECT_EQ(functions.cuLaunchKernel, nullptr);
  EXPECT_TRUE(functions.have_graphs());
}

TEST_F(DriverOpenGroups, GraphsAreAllOrNothing) {
  const Functions& functions = without("cuUserObjectRelease");
  EXPECT_FALSE(functions.have_graphs());
  EXPECT_EQ(functions.cuGraphRetainUserObject, nullptr);
  EXPECT_TRUE(functions.have_stream_memory());
}

TEST_F(DriverOpenGroups, StreamMemoryIsAllOrNothing) {
  const Functions& functions = without("cuMemFreeAsync");
  EXPECT_FALSE(functions.have_stream_memory());
  EXPECT_TRUE(functions.have_kernels());
}

TEST_F(DriverOpenGroups, SingleFunctionsAreMissedEachForItself) {
  const Functions& functions = without("cuCtxRecordEvent cuMemcpyBatchAsync");
  EXPECT_EQ(functions.cuCtxRecordEvent, nullptr);
  EXPECT_EQ(functions.cuMemcpyBatchAsync, nullptr);
  EXPECT_NE(functions.cuMemcpyPeerAsync, nullptr);
}

}  // namespace
}  // namespace ferry::cuda
