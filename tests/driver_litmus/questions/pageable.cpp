// Copies from and to memory that is not registered, or only in part.
#include <cstring>

#include "probe.hpp"

namespace ferry::litmus {
namespace {

constexpr std::size_t page = 4096;

// Copies to ordinary memory behind long work: what is there when the call returns?
std::string pageable_fetch(Lab& lab) {
  Probe probe(lab);
  const Pages pages(Probe::nbytes);
  const Stream stream(lab);
  probe.change_late(stream);
  lab.must(lab.driver().cuMemcpyDtoHAsync(pages.data(), probe.cell(), Probe::nbytes, stream), "cuMemcpyDtoHAsync");
  return Probe::name_of(pages.data());
}

// Copies from ordinary memory and overwrites it as soon as the call returns: which bytes arrive?
std::string pageable_source(Lab& lab, std::size_t nbytes, bool behind_long_work) {
  const Pages source(nbytes);
  const Pinned back(lab, nbytes);
  const DeviceBytes device(lab, nbytes);
  const Stream stream(lab);
  std::memset(source.data(), Probe::old_byte, nbytes);
  if (behind_long_work) lab.work_long(stream);
  lab.must(lab.driver().cuMemcpyHtoDAsync(device, source.data(), nbytes, stream), "cuMemcpyHtoDAsync");
  std::memset(source.data(), Probe::new_byte, nbytes);
  lab.must(lab.driver().cuMemcpyDtoHAsync(back.data(), device, nbytes, stream), "cuMemcpyDtoHAsync");
  lab.settle();
  for (std::size_t i = 1; i < nbytes; ++i) {
    if (back.data()[i] != back.data()[0]) return "torn";
  }
  return back.data()[0] == Probe::old_byte ? "as at the call" : "as it became";
}

// After a copy from ordinary memory behind long work: has the call waited for that work?
std::string pageable_source_wait(Lab& lab, std::size_t nbytes) {
  const Pages source(nbytes);
  const DeviceBytes device(lab, nbytes);
  const Stream stream(lab);
  const Event worked(lab);
  lab.work_long(stream);
  worked.record(stream);
  lab.must(lab.driver().cuMemcpyHtoDAsync(device, source.data(), nbytes, stream), "cuMemcpyHtoDAsync");
  return lab.driver().cuEventQuery(worked) == cuda::success ? "waited" : "did not wait";
}

enum class Into : unsigned char { half_from_the_start, half_to_the_end, two_registrations };

std::string across(Lab& lab, Into into, bool to_device) {
  const DeviceBytes device(lab, 2 * page);
  const Pages pages(4 * page);
  const Stream stream(lab);
  unsigned char* middle = pages.data() + 2 * page;
  const Registration first(lab, into == Into::half_to_the_end ? middle : pages.data(), 2 * page);
  std::unique_ptr<Registration> second;
  if (into == Into::two_registrations) second = std::make_unique<Registration>(lab, middle, 2 * page);
  unsigned char* host = middle - page;
  const cuda::CUresult code = to_device ? lab.driver().cuMemcpyHtoDAsync(device, host, 2 * page, stream)
                                        : lab.driver().cuMemcpyDtoHAsync(host, device, 2 * page, stream);
  lab.settle();
  return say(code);
}

}  // namespace

std::span<const Question> pageable_questions() {
  static const std::vector<Question> all{
      {"pageable_fetch_blocks",
       "a copy to pageable memory returns when its bytes are there, however long the queue",
       Basis::documented,
       {new_value},
       pageable_fetch},
      {"small_pageable_source",
       "a copy from pageable memory has read its source when the call returns",
       Basis::documented,
       {"as at the call"},
       [](Lab& lab) { return pageable_source(lab, page, false); }},
      {"small_pageable_source_behind_work",
       "it reads at the call, not in stream order",
       Basis::documented,
       {"as at the call"},
       [](Lab& lab) { return pageable_source(lab, page, true); }},
      {"large_pageable_source",
       "the same beyond what fits the driver's staging",
       Basis::documented,
       {"as at the call"},
       [](Lab& lab) { return pageable_source(lab, std::size_t{8} << 20, false); }},
      {"large_pageable_source_behind_work",
       "and behind long work",
       Basis::documented,
       {"as at the call"},
       [](Lab& lab) { return pageable_source(lab, std::size_t{8} << 20, true); }},
      {"wait_of_a_small_pageable_source",
       "whether such a call waits for the stream, 4 KiB",
       Basis::open,
       {},
       [](Lab& lab) { return pageable_source_wait(lab, page); }},
      {"wait_of_a_large_pageable_source",
       "whether such a call waits for the stream, 8 MiB",
       Basis::open,
       {},
       [](Lab& lab) { return pageable_source_wait(lab, std::size_t{8} << 20); }},
      {"fetch_half_into_a_registration",
       "a destination that begins in registered memory and ends outside is refused",
       Basis::assumed,
       {say(result::invalid_value)},
       [](Lab& lab) { return across(lab, Into::half_from_the_start, false); }},
      {"fetch_from_outside_into_a_registration",
       "so is one that begins outside and ends in registered memory",
       Basis::assumed,
       {say(result::invalid_value)},
       [](Lab& lab) { return across(lab, Into::half_to_the_end, false); }},
      {"source_half_in_a_registration",
       "the same for a source",
       Basis::assumed,
       {say(result::invalid_value)},
       [](Lab& lab) { return across(lab, Into::half_from_the_start, true); }},
      {"fetch_across_two_registrations",
       "a destination in two adjacent registrations is refused",
       Basis::assumed,
       {say(result::invalid_value)},
       [](Lab& lab) { return across(lab, Into::two_registrations, false); }},
      {"source_across_two_registrations",
       "so is a source",
       Basis::assumed,
       {say(result::invalid_value)},
       [](Lab& lab) { return across(lab, Into::two_registrations, true); }},
  };
  return all;
}

}  // namespace ferry::litmus
