// What the product decides about launches, by C name: for tests in Python, which carry the launches out on the fake
// device.
#include <cstring>
#include <vector>

#include "kernels/device_copy.hpp"
#include "kernels/image.hpp"
#include "kernels/piece_list.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace ferry::gpu;

struct Given {
  const char* kernel;
  std::uint32_t blocks, threads;
  std::uint64_t nbytes;
  unsigned char arguments[max_argument_nbytes];
};

struct GivenSlots {
  Address counter, headers, payloads;
  std::uint64_t pitch, count;
};

struct Pieces {
  std::uint64_t count;
  const std::uint64_t* addresses;
  const std::uint64_t* offsets;
  const std::uint64_t* extents;
  const std::uint8_t* casts;  // to and from of each; 0xFF and 0xFF move bits
};

namespace {

void give(const Launch& launch, Given& given) {
  given.kernel = info(launch.kernel()).symbol;
  given.blocks = launch.grid().blocks;
  given.threads = launch.grid().threads;
  given.nbytes = launch.nbytes();
  std::memcpy(given.arguments, launch.args(), launch.nbytes());
}

template <class Args>
void give(const char* kernel, const Args& args, Given& given) {
  given.kernel = kernel;
  given.nbytes = sizeof(Args);
  std::memcpy(given.arguments, &args, sizeof(Args));
}

PieceList list_of(const Pieces& pieces) {
  PieceList list;
  for (std::uint64_t i = 0; i < pieces.count; ++i) {
    list.add(pieces.addresses[i], pieces.offsets[i], pieces.extents[i], {pieces.casts[2 * i], pieces.casts[2 * i + 1]});
  }
  return list;
}

}  // namespace

// 0 where there is no launch. The method is that of launch_for().
EXPORT int launch_copy(Address to, Address from, int to_type, int from_type, std::uint64_t axis_count,
                       const CopyAxis* axes, std::uint32_t blocks, std::uint32_t threads, const Signal* signal,
                       Given* given) {
  const DeviceCopy copy{to, from, static_cast<ElementType>(to_type), static_cast<ElementType>(from_type),
                        std::vector<CopyAxis>(axes, axes + axis_count)};
  const auto launch =
      signal == nullptr ? launch_for(copy, {blocks, threads}) : store_launch_for(copy, *signal, {blocks, threads});
  if (!launch) return 0;
  give(*launch, *given);
  return 1;
}

// Rows, whatever launch_for() would have chosen; of a cast where the types differ.
EXPORT void launch_rows(const char* kernel, Address to, std::int64_t to_pitch, Address from, std::int64_t from_pitch,
                        std::uint64_t rows, std::uint64_t width, int to_type, int from_type, Given* given) {
  const Cast cast = cast_between(static_cast<ElementType>(to_type), static_cast<ElementType>(from_type));
  give(kernel,
       to_type == from_type ? row_args(to, to_pitch, from, from_pitch, rows, width)
                            : row_cast_args(to, to_pitch, from, from_pitch, rows, width, cast),
       *given);
}

// Writes the table, if `table_bytes` is given; returns its size, 0 where pieces fit the arguments.
EXPORT std::uint64_t piece_table(const Pieces* pieces, void* table_bytes) {
  const PieceList list = list_of(*pieces);
  if (list.fits_inline()) return 0;
  if (table_bytes != nullptr) std::memcpy(table_bytes, list.pieces().data(), list.table_nbytes());
  return list.table_nbytes();
}

EXPORT void launch_gather(const Pieces* pieces, int scatter, Address block, Address table, std::uint32_t blocks,
                          std::uint32_t threads, const Signal* signal, const GivenSlots* slots, Given* given) {
  const PieceList list = list_of(*pieces);
  const BlockLimit limit{blocks, threads};
  if (scatter != 0) return give(scatter_launch(list, block, table, limit), *given);
  if (signal != nullptr) return give(gather_store_launch(list, block, table, *signal, limit), *given);
  if (slots != nullptr) {
    const Slots ring{slots->counter, slots->headers, slots->payloads, slots->pitch, wide_divisor_of(slots->count)};
    return give(gather_slot_launch(list, ring, table, limit), *given);
  }
  give(gather_launch(list, block, table, limit), *given);
}

// What is not derived is set by the caller.
EXPORT std::uint64_t image_arguments(ImageArgs* args, std::uint64_t height, std::uint32_t to_itemsize) {
  *args = image_args(*args, height, to_itemsize);
  return sizeof(ImageArgs);
}

EXPORT std::uint32_t quotient(std::uint32_t number, std::uint32_t divisor) {
  return divisor_of(divisor).quotient(number);
}
EXPORT std::uint64_t wide_quotient(std::uint64_t number, std::uint64_t divisor) {
  return wide_divisor_of(divisor).quotient(number);
}

// Take the way of 64-bit indices, as for more items than there are.
EXPORT void make_wide(Given* given) {
  RowArgs rows;
  StridedArgs strided;
  if (given->nbytes == sizeof(rows)) {
    std::memcpy(&rows, given->arguments, sizeof(rows));
    rows.wide = 1;
    std::memcpy(given->arguments, &rows, sizeof(rows));
  } else {
    std::memcpy(&strided, given->arguments, sizeof(strided));
    strided.wide = 1;
    std::memcpy(given->arguments, &strided, sizeof(strided));
  }
}
EXPORT int is_wide(const Given* given) {
  RowArgs rows;
  StridedArgs strided;
  std::memcpy(&rows, given->arguments, sizeof(rows));
  std::memcpy(&strided, given->arguments, sizeof(strided));
  return static_cast<int>(given->nbytes == sizeof(rows) ? rows.wide : strided.wide);
}
