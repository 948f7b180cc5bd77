// Loads the image once, and makes its kernels resident in each context that asks for them.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda/kernel_image.hpp"
#include "cuda/kernels.hpp"

namespace ferry::cuda {

// Any thread. Never throws for a missing or refused image: everything works without kernels.
class KernelLibrary {
 public:
  explicit KernelLibrary(const Driver& driver) noexcept : driver_(driver) {}
  KernelLibrary(const KernelLibrary&) = delete;
  KernelLibrary& operator=(const KernelLibrary&) = delete;
  ~KernelLibrary();  // unloads; no launch may be pending

  // The kernels of the scope's context, all of them resident, else null. Loads at the first call for a context unless
  // `stream`, or the legacy stream, is capturing: loading may wait for the device.
  [[nodiscard]] const Kernels* find_or_load(const ContextScope& scope, std::optional<CUstream> stream);

  // What find_or_load last found for this context.
  [[nodiscard]] KernelStatus status(const ContextIdentity& context) const;

 private:
  struct Entry {
    ContextIdentity context;
    std::unique_ptr<const Kernels> kernels;
    KernelStatus status;
  };
  struct Loaded {
    std::unique_ptr<const Kernels> kernels;
    KernelStatus status;
  };

  [[nodiscard]] const Entry* entry_of(const ContextIdentity& context) const noexcept;
  [[nodiscard]] Loaded load(const ContextScope& scope, std::optional<CUstream> stream);
  [[nodiscard]] Loaded resolve(const ContextScope& scope, CUlibrary library) const;
  [[nodiscard]] KernelStatus library_for(CUlibrary& library);
  void forget(CUlibrary library) noexcept;
  const Kernels* remember(const ContextScope& scope, Loaded loaded);
  [[nodiscard]] KernelStatus failed(CUresult code, const char* call, const std::string& about) const;

  const Driver& driver_;
  mutable std::mutex mutex_;
  KernelImage image_;  // must live as long as the library
  CUlibrary library_ = nullptr;
  std::optional<KernelStatus> library_status_;   // once it is settled
  std::vector<std::unique_ptr<Entry>> entries_;  // those of contexts that were reset stay: somebody may hold them
};

}  // namespace ferry::cuda
