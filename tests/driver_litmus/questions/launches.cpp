// Kernels: the order in which they run, when their arguments are read, and when the host sees what they store.
#include <atomic>
#include <chrono>
#include <cstring>

#include "capturing.hpp"
#include "kernel_image.hpp"
#include "kernels/rows.hpp"
#include "kernels/strided.hpp"

namespace ferry::litmus {
namespace {

// Copies the probe's value by a kernel, and reads the copy.
class Copied {
 public:
  explicit Copied(Lab& lab)
      : lab_(lab),
        probe(lab),
        kernels(lab),
        copy(lab, Probe::nbytes),
        host(lab, Probe::nbytes),
        function(kernels.function("ferry_rows")) {}

  [[nodiscard]] gpu::RowArgs args() const { return gpu::row_args(copy, 0, probe.cell(), 0, 1, Probe::nbytes); }
  [[nodiscard]] std::string read(cuda::CUstream stream) const {
    lab_.must(lab_.driver().cuMemcpyDtoHAsync(host.data(), copy, Probe::nbytes, stream), "cuMemcpyDtoHAsync");
    lab_.settle();
    return Probe::name_of(host.data());
  }

 private:
  Lab& lab_;

 public:
  Probe probe;
  LoadedKernels kernels;
  DeviceBytes copy;
  Pinned host;
  cuda::CUfunction function;
};

std::string order_in_a_stream(Lab& lab) {
  Copied copied(lab);
  const Stream stream(lab);
  gpu::RowArgs args = copied.args();
  copied.probe.change_late(stream);
  copied.kernels.launch(copied.function, args, stream);
  return copied.read(stream);
}

std::string arguments_after_the_call(Lab& lab) {
  Copied copied(lab);
  const Stream stream(lab);
  gpu::RowArgs args = copied.args();
  copied.probe.change_late(stream);
  copied.kernels.launch(copied.function, args, stream);
  std::memset(static_cast<void*>(&args), 0, sizeof(args));
  return copied.read(stream);
}

std::string arguments_of_a_replay(Lab& lab) {
  Copied copied(lab);
  const Driver& d = lab.driver();
  const Stream stream(lab);
  gpu::RowArgs args = copied.args();
  Capture capture(lab, stream);
  copied.kernels.launch(copied.function, args, stream);
  lab.must(capture.end(), "cuStreamEndCapture");
  std::memset(static_cast<void*>(&args), 0, sizeof(args));
  cuda::CUgraphExec exec = nullptr;
  lab.need(d.cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags");
  lab.must(d.cuGraphInstantiateWithFlags(&exec, capture.graph(), 0), "cuGraphInstantiateWithFlags");
  copied.probe.change(stream);
  const cuda::CUresult code = d.cuGraphLaunch(exec, stream);
  const std::string value = code == cuda::success ? copied.read(stream) : say(code);
  d.cuGraphExecDestroy(exec);
  return value;
}

std::string data_behind_the_flag(Lab& lab) {
  constexpr std::uint32_t count = 4096;
  const LoadedKernels kernels(lab);
  const DeviceBytes source(lab, 4 * count), ticket(lab, 4);
  const Pinned host(lab, 4 * count + 4096);
  const Stream stream(lab);
  std::memset(host.data(), 0x33, 4 * count);
  lab.must(lab.driver().cuMemcpyHtoDAsync(source, host.data(), 4 * count, stream), "cuMemcpyHtoDAsync");
  std::memset(host.data() + 4 * count, 0, 4096);
  lab.must(lab.driver().cuMemcpyHtoDAsync(ticket, host.data() + 4 * count, 4, stream), "cuMemcpyHtoDAsync");
  lab.settle();
  std::memset(host.data(), 0, 4 * count);
  cuda::CUdeviceptr mapped = 0;
  lab.must(lab.driver().cuMemHostGetDevicePointer(&mapped, host.data(), 0), "cuMemHostGetDevicePointer");
  gpu::StridedStoreArgs args{};
  args.copy.to = mapped;
  args.copy.from = source;
  args.copy.count = count;
  args.copy.axis_count = 1;
  args.copy.itemsize = 4;
  args.copy.cast = gpu::no_cast;
  args.copy.axes[0].to_stride = args.copy.axes[0].from_stride = 4;
  args.signal = {mapped + 4 * count, ticket, 7};
  lab.must(kernels.launch_code(kernels.function("ferry_strided_store"), args, stream, 8), "cuLaunchKernel");
  auto& flag = *reinterpret_cast<std::uint64_t*>(host.data() + 4 * count);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::atomic_ref(flag).load(std::memory_order_acquire) != 7) {
    lab.driver().cuStreamQuery(stream);
    if (std::chrono::steady_clock::now() > until) return "no flag";
  }
  for (std::uint32_t i = 0; i < 4 * count; ++i) {
    if (host.data()[i] != 0x33) return "some data";
  }
  return "all data";
}

std::string load_code(const Lab& lab, const char* text) {
  lab.need(lab.driver().cuLibraryLoadData, "cuLibraryLoadData");
  cuda::CUlibrary library = nullptr;
  const cuda::CUresult code = lab.driver().cuLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (code == cuda::success) lab.driver().cuLibraryUnload(library);
  return accepted(code);
}

}  // namespace

std::span<const Question> launch_questions() {
  static const std::vector<Question> all{
      {"order_in_a_stream",
       "a kernel runs behind earlier work of its stream, and before later work",
       Basis::documented,
       {new_value},
       order_in_a_stream},
      {"arguments_are_copied",
       "a launch reads its arguments at the call",
       Basis::documented,
       {new_value},
       arguments_after_the_call},
      {"captured_arguments_are_frozen",
       "a replay has the arguments of the capture, and reads memory when it runs",
       Basis::documented,
       {new_value},
       arguments_of_a_replay},
      {"data_is_there_with_the_flag",
       "the host finds all data of all blocks behind a flag stored with release at system scope",
       Basis::documented,
       {"all data"},
       data_behind_the_flag},
      {"launch_of_no_blocks",
       "a grid without blocks is refused",
       Basis::documented,
       {"1 INVALID_VALUE"},
       [](Lab& lab) {
         Copied copied(lab);
         gpu::RowArgs args = copied.args();
         return say(copied.kernels.launch_code(copied.function, args, legacy, 0));
       }},
      {"unknown_kernel",
       "a kernel that the image has not is not found",
       Basis::documented,
       {"500 NOT_FOUND"},
       [](Lab& lab) {
         const LoadedKernels kernels(lab);
         cuda::CUkernel kernel = nullptr;
         return say(lab.driver().cuLibraryGetKernel(&kernel, kernels.library(), "ferry_no_such_kernel"));
       }},
      {"text_is_no_image",
       "what is no image is refused, and the context stays good",
       Basis::assumed,
       {"refused"},
       [](Lab& lab) { return load_code(lab, "this is neither a binary nor a program for a device"); }},
  };
  return all;
}

}  // namespace ferry::litmus
