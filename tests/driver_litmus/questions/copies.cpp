// What copies move, with pitches, without bytes, at odd addresses.
#include <cstring>
#include <functional>

#include "probe.hpp"

namespace ferry::litmus {
namespace {

using cuda::Memcpy2D;

constexpr std::size_t room = 16384;

unsigned char pattern(std::size_t i) { return static_cast<unsigned char>(i * 7 + i / 251 + 1); }

// Two ends of a copy: a device buffer and pinned memory of `room` bytes each, the pattern in one, zeros in the other.
struct Ends {
  explicit Ends(const Lab& in) : lab(in), device(in, room), host(in, room), stream(in) {}

  void move(bool to_device) const {
    const auto& d = lab.driver();
    if (to_device) {
      lab.must(d.cuMemcpyHtoDAsync(device, host.data(), room, stream), "cuMemcpyHtoDAsync");
    } else {
      lab.must(d.cuMemcpyDtoHAsync(host.data(), device, room, stream), "cuMemcpyDtoHAsync");
    }
    wait();
  }
  void wait() const {
    const Event event(lab);
    event.record(stream);
    event.wait();
  }
  void pattern_on_device() const {
    for (std::size_t i = 0; i < room; ++i) host.data()[i] = pattern(i);
    move(true);
    std::memset(host.data(), 0, room);
  }
  void zeros_on_device() const {
    std::memset(host.data(), 0, room);
    move(true);
    for (std::size_t i = 0; i < room; ++i) host.data()[i] = pattern(i);
  }

  const Lab& lab;
  DeviceBytes device;
  Pinned host;
  Stream stream;
};

struct Rows {
  std::size_t width, height, device_pitch, host_pitch, device_x = 0, device_y = 0, host_x = 0, host_y = 0;
};

Memcpy2D described(const Ends& ends, const Rows& r, bool to_device) {
  Memcpy2D copy{};
  copy.width_nbytes = r.width;
  copy.height = r.height;
  copy.src_memory_type = to_device ? cuda::memorytype_host : cuda::memorytype_device;
  copy.dst_memory_type = to_device ? cuda::memorytype_device : cuda::memorytype_host;
  copy.src_host = ends.host.data();
  copy.dst_host = ends.host.data();
  copy.src_device = ends.device;
  copy.dst_device = ends.device;
  copy.src_pitch = to_device ? r.host_pitch : r.device_pitch;
  copy.dst_pitch = to_device ? r.device_pitch : r.host_pitch;
  copy.src_x_nbytes = to_device ? r.host_x : r.device_x;
  copy.src_y = to_device ? r.host_y : r.device_y;
  copy.dst_x_nbytes = to_device ? r.device_x : r.host_x;
  copy.dst_y = to_device ? r.device_y : r.host_y;
  return copy;
}

// Copies rows, and compares every byte of the destination with what loops over rows would put there.
std::string rows(Lab& lab, const Rows& r, bool to_device) {
  const Ends ends(lab);
  to_device ? ends.zeros_on_device() : ends.pattern_on_device();
  const Memcpy2D copy = described(ends, r, to_device);
  const cuda::CUresult code = lab.driver().cuMemcpy2DAsync(&copy, ends.stream);
  if (code != cuda::success) return say(code);
  ends.wait();
  if (to_device) ends.move(false);
  std::vector<unsigned char> expected(room, 0);
  for (std::size_t y = 0; y < r.height; ++y) {
    for (std::size_t x = 0; x < r.width; ++x) {
      const std::size_t on_device = (y + r.device_y) * r.device_pitch + r.device_x + x;
      const std::size_t on_host = (y + r.host_y) * r.host_pitch + r.host_x + x;
      expected[to_device ? on_device : on_host] = pattern(to_device ? on_host : on_device);
    }
  }
  return std::memcmp(expected.data(), ends.host.data(), room) == 0 ? "exactly the rows" : "other bytes";
}

std::string rows_code(Lab& lab, const Rows& r) {
  const Ends ends(lab);
  const Memcpy2D copy = described(ends, r, false);
  return say(lab.driver().cuMemcpy2DAsync(&copy, ends.stream));
}

std::string odd_piece(Lab& lab) {
  const Ends ends(lab);
  ends.pattern_on_device();
  lab.must(lab.driver().cuMemcpyDtoHAsync(ends.host.data() + 3, ends.device + 13, 5001, ends.stream),
           "cuMemcpyDtoHAsync");
  ends.wait();
  for (std::size_t i = 0; i < room; ++i) {
    const bool inside = i >= 3 && i < 3 + 5001;
    if (ends.host.data()[i] != (inside ? pattern(i + 10) : 0)) return "other bytes";
  }
  return "exactly the piece";
}

// Host memory given as the device's source: the device pointer of registered memory.
std::string from_mapped(Lab& lab) {
  const Ends ends(lab);
  const Pinned other(lab, room);
  for (std::size_t i = 0; i < room; ++i) other.data()[i] = pattern(i);
  cuda::CUdeviceptr mapped = 0;
  lab.must(lab.driver().cuMemHostGetDevicePointer(&mapped, other.data(), 0), "cuMemHostGetDevicePointer");
  lab.must(lab.driver().cuMemcpyDtoDAsync(ends.device, mapped, room, ends.stream), "cuMemcpyDtoDAsync");
  ends.move(false);
  return std::memcmp(ends.host.data(), other.data(), room) == 0 ? "the bytes" : "other bytes";
}

}  // namespace

std::span<const Question> copy_questions() {
  static const std::vector<Question> all{
      {"piece_at_odd_addresses",
       "a copy needs no alignment and touches nothing else",
       Basis::documented,
       {"exactly the piece"},
       odd_piece},
      {"rows_to_the_host",
       "rows with a pitch on either side; gaps stay as they were",
       Basis::documented,
       {"exactly the rows"},
       [](Lab& lab) { return rows(lab, {48, 5, 512, 64}, false); }},
      {"rows_to_the_device",
       "the same the other way",
       Basis::documented,
       {"exactly the rows"},
       [](Lab& lab) { return rows(lab, {48, 5, 512, 64}, true); }},
      {"rows_at_an_offset",
       "the offsets in bytes and rows apply to each side",
       Basis::documented,
       {"exactly the rows"},
       [](Lab& lab) { return rows(lab, {33, 7, 256, 128, 5, 2, 9, 3}, false); }},
      {"rows_with_odd_pitches",
       "a pitch may be any number of bytes",
       Basis::assumed,
       {"exactly the rows"},
       [](Lab& lab) { return rows(lab, {31, 9, 97, 61}, false); }},
      {"rows_without_gaps",
       "rows that touch are one block",
       Basis::documented,
       {"exactly the rows"},
       [](Lab& lab) { return rows(lab, {64, 16, 64, 64}, false); }},
      {"one_row_with_a_small_pitch",
       "whether the pitch of a single row is ignored",
       Basis::open,
       {},
       [](Lab& lab) { return rows_code(lab, {64, 1, 8, 8}); }},
      {"rows_wider_than_their_pitch",
       "rows that overlap are refused",
       Basis::documented,
       {say(result::invalid_value)},
       [](Lab& lab) { return rows_code(lab, {64, 4, 48, 64}); }},
      {"rows_of_no_width",
       "a copy of rows without bytes is nothing",
       Basis::assumed,
       {"success"},
       [](Lab& lab) { return rows_code(lab, {0, 4, 64, 64}); }},
      {"no_rows",
       "so is one without rows",
       Basis::assumed,
       {"success"},
       [](Lab& lab) { return rows_code(lab, {64, 0, 64, 64}); }},
      {"no_bytes",
       "a copy of no bytes is nothing",
       Basis::assumed,
       {"success"},
       [](Lab& lab) {
         const Ends ends(lab);
         return say(lab.driver().cuMemcpyDtoHAsync(ends.host.data(), ends.device, 0, ends.stream));
       }},
      {"no_bytes_from_nowhere",
       "whether NULL pointers are good enough for it",
       Basis::open,
       {},
       [](Lab& lab) {
         const Stream stream(lab);
         return say(lab.driver().cuMemcpyDtoHAsync(nullptr, 0, 0, stream));
       }},
      {"bytes_from_nowhere",
       "a source of NULL is refused",
       Basis::documented,
       {say(result::invalid_value)},
       [](Lab& lab) {
         const Ends ends(lab);
         return say(lab.driver().cuMemcpyDtoHAsync(ends.host.data(), 0, 64, ends.stream));
       }},
      {"device_source_in_mapped_memory",
       "a copy on the device may read registered memory",
       Basis::documented,
       {"the bytes"},
       from_mapped},
  };
  return all;
}

}  // namespace ferry::litmus
