// Carries out a copy panel by panel, on as many threads as the caller may use.
#pragma once

#include "core/tensor_ref.hpp"
#include "host/row_pass.hpp"
#include "host/walk.hpp"

namespace ferry {

void carry_rows(const Walk<2>& walk, const RowPass& pass, std::int64_t to_itemsize, std::int64_t from_itemsize);

// Through blocks of carriers. With `check`, tells whether every value survived.
bool carry_blocks(const Walk<2>& walk, const TensorRef& destination, const TensorRef& source, bool check);

// From this size of the destination on, what is written goes past the caches: three quarters of the last cache, unless
// set otherwise. Measured on a 32 MiB cache: past the caches 64 MiB are written 1.15 times as fast, 16 MiB 0.85 times.
[[nodiscard]] std::int64_t stream_threshold_nbytes() noexcept;
void set_stream_threshold_nbytes(std::int64_t nbytes) noexcept;

}  // namespace ferry
