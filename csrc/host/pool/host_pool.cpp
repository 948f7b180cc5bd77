#include "host/pool/host_pool.hpp"

#include <pthread.h>

#include "host/pool/memory_limit.hpp"

namespace ferry {
namespace {

Pool* pool = nullptr;

bool made() {
  pool = new Pool(static_cast<std::size_t>(memory_limit_nbytes() / idle_share_of_memory));
  const auto release = [] { pool->release_after_fork(); };
  ::pthread_atfork([] { pool->hold_for_fork(); }, release, release);
  return true;
}

}  // namespace

Pool& host_pool() {
  static const bool once = made();
  static_cast<void>(once);
  return *pool;
}

}  // namespace ferry
