// Loading kernels: once, everything, outside captures; and every way in which there are none.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "cuda/kernel_library.hpp"
#include "cuda/stream.hpp"
#include "fake.hpp"

namespace ferry::cuda {
namespace {

using test::calls;
using test::count_of;
using test::live;

constexpr int kernels = static_cast<int>(gpu::kernel_count);

// A device, an image that it takes, and nothing loaded yet.
class KernelLoading : public test::OnFakeDevice {
 protected:
  void SetUp() override {
    test::OnFakeDevice::SetUp();
    name_image(write_image("FAKE"));
  }
  void TearDown() override {
    ::unsetenv("TENSORFERRY_KERNEL_IMAGE");
    test::OnFakeDevice::TearDown();
  }

  // On a machine of these presets instead.
  void on(std::initializer_list<const char*> presets) {
    primaries_.reset();
    test::OnFakeDriver::TearDown();
    begin(presets);
  }

  static std::string write_image(const std::string& bytes) {
    const std::string file = ::testing::TempDir() + "ferry_kernels_" + std::to_string(::getpid()) + ".image";
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }
  static void name_image(const std::string& file) { ::setenv("TENSORFERRY_KERNEL_IMAGE", file.c_str(), 1); }

  // What the first call finds, where it finds nothing.
  KernelStatus refusal() {
    KernelLibrary library(*driver_);
    const ContextScope here = scope();
    EXPECT_EQ(library.find_or_load(here, {}), nullptr);
    return library.status(here.context());
  }
};

TEST_F(KernelLoading, LoadsTheImageOnceAndMakesEveryKernelResident) {
  KernelLibrary library(*driver_);
  const ContextScope here = scope();
  test::forget_calls();
  const Kernels* first = library.find_or_load(here, {});
  ASSERT_NE(first, nullptr) << library.status(here.context()).why;
  EXPECT_EQ(count_of("cuLibraryLoadData"), 1);
  EXPECT_EQ(count_of("cuLibraryGetKernel"), kernels);
  EXPECT_EQ(count_of("cuKernelGetFunction"), kernels);
  EXPECT_EQ(count_of("cuFuncGetAttribute"), kernels);
  test::forget_calls();
  EXPECT_EQ(library.find_or_load(here, {}), first);
  EXPECT_TRUE(calls().empty());
  EXPECT_EQ(library.status(here.context()).state, KernelState::ready);
}

TEST_F(KernelLoading, KnowsHowManyMultiprocessorsTheDeviceHas) {
  KernelLibrary library(*driver_);
  const Kernels* found = library.find_or_load(scope(), {});
  ASSERT_NE(found, nullptr);
  EXPECT_GT(found->multiprocessors(), 1);
}

TEST_F(KernelLoading, OfASecondDeviceUsesTheLibraryOfTheFirst) {
  on({"two_devices"});
  KernelLibrary library(*driver_);
  ASSERT_NE(library.find_or_load(scope(0), {}), nullptr);
  test::use_device(1);
  test::forget_calls();
  const Kernels* second = library.find_or_load(scope(1), {});
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(count_of("cuLibraryLoadData"), 0);
  EXPECT_EQ(count_of("cuKernelGetFunction"), kernels);
  test::use_device(0);
  EXPECT_NE(library.find_or_load(scope(0), {}), second);
}

TEST_F(KernelLoading, AfterAResetTheKernelsOfTheNewContextAreItsOwn) {
  KernelLibrary library(*driver_);
  ASSERT_NE(library.find_or_load(scope(), {}), nullptr);
  test::reset_device(0);
  test::use_device(0);
  test::forget_calls();
  const ContextScope renewed = scope();
  const Kernels* found = library.find_or_load(renewed, {});
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->context(), renewed.context());
  EXPECT_EQ(count_of("cuKernelGetFunction"), kernels);
}

TEST_F(KernelLoading, ThreadsThatAskAtOnceGetTheSameKernels) {
  KernelLibrary library(*driver_);
  std::vector<const Kernels*> found(4);
  std::vector<std::thread> threads;
  for (const Kernels*& mine : found) threads.emplace_back([&] { mine = library.find_or_load(scope(), {}); });
  for (std::thread& thread : threads) thread.join();
  ASSERT_NE(found[0], nullptr);
  EXPECT_EQ(found, std::vector<const Kernels*>(4, found[0]));
}

TEST_F(KernelLoading, WaitsUntilACaptureIsOver) {
  KernelLibrary library(*driver_);
  const ContextScope here = scope();
  const OwnedStream stream(here);
  const auto begin = test::driver_function<int(CUstream, int)>("cuStreamBeginCapture", 10010);
  const auto end = test::driver_function<int(CUstream, CUgraph*)>("cuStreamEndCapture", 10000);
  constexpr int global = 0;
  test::as_somebody_else([&] { ASSERT_EQ(begin(stream.handle(), global), success); });
  test::forget_calls();
  EXPECT_EQ(library.find_or_load(here, stream.handle()), nullptr);
  EXPECT_EQ(count_of("cuLibraryLoadData"), 0);
  EXPECT_EQ(library.status(here.context()).state, KernelState::not_loaded_yet);
  CUgraph graph = nullptr;
  test::as_somebody_else([&] { EXPECT_EQ(end(stream.handle(), &graph), success); });
  EXPECT_NE(library.find_or_load(here, stream.handle()), nullptr);
}

TEST_F(KernelLoading, LeavesACaptureOfAnotherStreamAlone) {
  KernelLibrary library(*driver_);
  const ContextScope here = scope();
  const OwnedStream captured(here);
  const OwnedStream ours(here);
  const auto begin = test::driver_function<int(CUstream, int)>("cuStreamBeginCapture", 10010);
  const auto end = test::driver_function<int(CUstream, CUgraph*)>("cuStreamEndCapture", 10000);
  test::as_somebody_else([&] { ASSERT_EQ(begin(captured.handle(), 0), success); });
  EXPECT_NE(library.find_or_load(here, ours.handle()), nullptr);
  CUgraph graph = nullptr;
  test::as_somebody_else([&] { EXPECT_EQ(end(captured.handle(), &graph), success); });
}

struct Refusal {
  const char* name;
  std::vector<const char*> presets;
  KernelState state;
  CUresult code;
};

class RefusedKernels : public KernelLoading, public ::testing::WithParamInterface<Refusal> {};

TEST_P(RefusedKernels, AreNamedAndNotAskedForAgain) {
  const Refusal& given = GetParam();
  primaries_.reset();
  test::OnFakeDriver::TearDown();
  test::OnFakeDriver::SetUp();
  for (const char* preset : given.presets) ASSERT_EQ(test::fake<int(const char*)>("fake_preset")(preset), 1);
  driver_ = &start();
  primaries_ = std::make_unique<PrimaryContexts>(*driver_);
  test::use_device(0);

  KernelLibrary library(*driver_);
  const ContextScope here = scope();
  EXPECT_EQ(library.find_or_load(here, {}), nullptr);
  const KernelStatus status = library.status(here.context());
  EXPECT_EQ(status.state, given.state);
  EXPECT_EQ(status.code, given.code);
  EXPECT_NE(status.why, "");
  test::forget_calls();
  EXPECT_EQ(library.find_or_load(here, {}), nullptr);
  EXPECT_TRUE(calls().empty());
}

INSTANTIATE_TEST_SUITE_P(
    ByAnswer, RefusedKernels,
    ::testing::Values(Refusal{"OfADamagedImage", {"image_invalid"}, KernelState::refused, 200},
                      Refusal{"OfOtherArchitectures", {"image_of_other_architectures"}, KernelState::refused, 209},
                      Refusal{"OfDamagedText", {"image_with_invalid_ptx"}, KernelState::refused, 218},
                      Refusal{"OfANewerToolkit", {"driver_550", "image_of_newer_toolkit"}, KernelState::refused, 222}),
    [](const auto& given) { return std::string(given.param.name); });

TEST_F(KernelLoading, NamesAFileThatIsNotThere) {
  name_image("/no/such/image");
  const KernelStatus status = refusal();
  EXPECT_EQ(status.state, KernelState::unreadable);
  EXPECT_EQ(status.why, "TENSORFERRY_KERNEL_IMAGE=/no/such/image: the file cannot be read");
}

TEST_F(KernelLoading, NamesAFileThatIsCutShort) {
  std::string head(16, '\0');
  const std::uint32_t magic = 0xBA55ED50U;
  const std::uint16_t head_nbytes = 16;
  const std::uint64_t body_nbytes = 1000;
  std::memcpy(head.data(), &magic, sizeof(magic));
  std::memcpy(head.data() + 6, &head_nbytes, sizeof(head_nbytes));
  std::memcpy(head.data() + 8, &body_nbytes, sizeof(body_nbytes));
  name_image(write_image(head + std::string(999, 'x')));
  EXPECT_EQ(refusal().state, KernelState::unreadable);
  name_image(write_image(head + std::string(1000, 'x')));
  KernelLibrary library(*driver_);
  EXPECT_NE(library.find_or_load(scope(), {}), nullptr);
}

TEST_F(KernelLoading, FindsNoneWhereTheBuildHasNone) {
  ::unsetenv("TENSORFERRY_KERNEL_IMAGE");
  if (kernel_build().embedded) {
    KernelLibrary library(*driver_);
    EXPECT_NE(library.find_or_load(scope(), {}), nullptr);
    return;
  }
  const KernelStatus status = refusal();
  EXPECT_EQ(status.state, KernelState::not_built);
  EXPECT_EQ(status.why, std::string(kernel_build().missing));
}

class KernelFaults : public KernelLoading, public ::testing::WithParamInterface<const char*> {};

// A shortage passes; so the next call loads.
TEST_P(KernelFaults, AreTriedAgain) {
  KernelLibrary library(*driver_);
  const ContextScope here = scope();
  test::fail(GetParam(), 1, result::out_of_memory);
  EXPECT_EQ(library.find_or_load(here, {}), nullptr);
  const KernelStatus status = library.status(here.context());
  EXPECT_EQ(status.state, KernelState::not_loaded_yet);
  EXPECT_NE(status.why.find("2, CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << status.why;
  test::clear_faults();
  EXPECT_NE(library.find_or_load(here, {}), nullptr);
}

INSTANTIATE_TEST_SUITE_P(ByCall, KernelFaults,
                         ::testing::Values("cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelGetFunction",
                                           "cuFuncGetAttribute", "cuThreadExchangeStreamCaptureMode"),
                         [](const auto& given) { return std::string(given.param); });

TEST_F(KernelLoading, LaunchesWithTheArgumentsAsTheyAreAtTheCall) {
  KernelLibrary library(*driver_);
  const ContextScope here = scope();
  const OwnedStream stream(here);
  const Kernels* found = library.find_or_load(here, {});
  ASSERT_NE(found, nullptr);
  CUdeviceptr memory = 0;
  const auto allocate = test::driver_function<int(CUdeviceptr*, std::size_t)>("cuMemAlloc", 3020);
  const auto release = test::driver_function<int(CUdeviceptr)>("cuMemFree", 3020);
  test::as_somebody_else([&] { ASSERT_EQ(allocate(&memory, 64), success); });
  ASSERT_EQ(functions().cuMemsetD8Async(memory, 7, 32, stream.handle()), success);
  gpu::RowArgs args = gpu::row_args(memory + 32, 0, memory, 0, 1, 20);
  found->launch(here, gpu::Kernel::rows, {1, 32}, args, stream.handle());
  args.to = 1;  // nobody looks at it any more
  std::vector<unsigned char> arrived(32);
  void* const pinned = arrived.data();
  ASSERT_EQ(functions().cuMemHostRegister(pinned, arrived.size(), memhostregister_portable), success);
  ASSERT_EQ(functions().cuMemcpyDtoHAsync(pinned, memory + 32, 20, stream.handle()), success);
  const auto synchronise = test::driver_function<int(CUstream)>("cuStreamSynchronize", 2000);
  test::as_somebody_else([&] { ASSERT_EQ(synchronise(stream.handle()), success); });
  EXPECT_EQ(std::vector<unsigned char>(arrived.begin(), arrived.begin() + 20), std::vector<unsigned char>(20, 7));
  EXPECT_EQ(functions().cuMemHostUnregister(pinned), success);
  test::as_somebody_else([&] { EXPECT_EQ(release(memory), success); });
}

TEST_F(KernelLoading, RefusesArgumentsOfAnotherKernel) {
  KernelLibrary library(*driver_);
  const ContextScope here = scope();
  const Kernels* found = library.find_or_load(here, {});
  ASSERT_NE(found, nullptr);
  const gpu::RowArgs args{};
  EXPECT_NE(test::error_of([&] { found->launch(here, gpu::Kernel::transpose_1, {1, 32}, args, legacy_stream()); }),
            "nothing");
}

}  // namespace
}  // namespace ferry::cuda
