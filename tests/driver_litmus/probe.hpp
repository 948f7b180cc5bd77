// A value in device memory that one stream changes late, and another reads: tells whether the second waited.
#pragma once

#include <string>

#include "resources.hpp"

namespace ferry::litmus {

inline const std::string old_value = "the old value";
inline const std::string new_value = "the new value";

class Probe {
 public:
  explicit Probe(Lab& lab) : lab_(lab), cell_(lab, nbytes), next_(lab, nbytes), host_(lab, 3 * nbytes) {
    fill(0, old_byte, cell_);
    fill(1, new_byte, next_);
    lab.settle();
    for (std::size_t i = 0; i < host_.size(); ++i) host_.data()[i] = 0;
  }

  // After long work, puts the new value where the old one is. Returns at once.
  void change_late(cuda::CUstream stream) {
    lab_.work_long(stream);
    change(stream);
  }
  void change(cuda::CUstream stream) const {
    lab_.must(lab_.driver().cuMemcpyDtoDAsync(cell_, next_, nbytes, stream), "cuMemcpyDtoDAsync");
  }
  // Copies the value to pinned memory in the order of `stream`. Returns at once.
  void fetch(cuda::CUstream stream) const {
    lab_.must(lab_.driver().cuMemcpyDtoHAsync(host_.data(), cell_, nbytes, stream), "cuMemcpyDtoHAsync");
  }
  // What arrived there by now.
  [[nodiscard]] std::string fetched() const { return name_of(host_.data()); }
  // Reads the value in the order of `stream`, and waits for that alone.
  [[nodiscard]] std::string read(cuda::CUstream stream) const {
    const Event done(lab_);
    fetch(stream);
    done.record(stream);
    done.wait();
    return fetched();
  }
  [[nodiscard]] cuda::CUdeviceptr cell() const { return cell_; }
  [[nodiscard]] unsigned char* host() const { return host_.data(); }
  static constexpr std::size_t nbytes = 4096;
  static constexpr unsigned char old_byte = 0x11, new_byte = 0x22;

  [[nodiscard]] static std::string name_of(const unsigned char* bytes) {
    for (std::size_t i = 1; i < nbytes; ++i) {
      if (bytes[i] != bytes[0]) return "torn";
    }
    return bytes[0] == old_byte ? old_value : bytes[0] == new_byte ? new_value : "neither value";
  }

 private:
  void fill(std::size_t at, unsigned char value, cuda::CUdeviceptr to) const {
    unsigned char* from = host_.data() + at * nbytes;
    for (std::size_t i = 0; i < nbytes; ++i) from[i] = value;
    lab_.must(lab_.driver().cuMemcpyHtoDAsync(to, from, nbytes, legacy), "cuMemcpyHtoDAsync");
  }

  Lab& lab_;
  DeviceBytes cell_, next_;
  Pinned host_;
};

}  // namespace ferry::litmus
