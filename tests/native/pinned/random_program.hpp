// A random program of leases, copies of ours and of others, and returns; it says what went wrong.
#pragma once

#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "pinned_fixture.hpp"

namespace ferry::test {

struct Program {
  const char* schedule = "shuffled";
  std::uint64_t seed = 0;
  int steps = 40;
  Fence fence = Fence::streams;
};

class RandomProgram {
 public:
  RandomProgram(cuda::Runtime& runtime, cuda::PrimaryContexts& primaries, std::vector<CUstream> known, CUstream unknown,
                const Program& program)
      : runtime_(runtime),
        scope_(runtime.driver(), primaries, 0, cuda::Primary::if_active),
        known_(std::move(known)),
        unknown_(unknown),
        steps_(program.steps),
        random_(program.seed),
        pool_(PinnedPool::make(runtime, std::size_t{1} << 20, program.fence)) {
    source_ = device_memory_of(poison, largest_nbytes);
  }

  // Empty when memory that was on loan kept what its holder had written, and the accounts were right.
  std::string run() {
    for (int step = 0; step < steps_ && problem_.empty(); ++step) {
      switch (random_() % 8) {
        case 0:
        case 1:
        case 2:
          take();
          break;
        case 3:
        case 4:
        case 5:
          let_go(random_() % 4);
          break;
        case 6:
          pool_->poll();
          queue_.reap();
          break;
        default:
          check_all();
      }
    }
    check_all();
    loans_.clear();
    for (int i = 0; i < 20000 && (queue_.stats().pending > 0 || pool_->stats().retired_nbytes > 0); ++i) {
      queue_.reap();
      close_epoch(*pool_, scope_);
      pool_->poll();
      if (i > 100) std::this_thread::sleep_for(std::chrono::microseconds(100));  // a device of its own may be slow
    }
    if (problem_.empty() && queue_.stats().pending > 0) problem_ = "a copy was never done";
    if (problem_.empty() && pool_->stats().retired_nbytes > 0) problem_ = "a block never came back";
    const PinnedStats stats = pool_->stats();
    if (problem_.empty() && static_cast<std::int64_t>(stats.idle_nbytes) != cuda::test::live("host_bytes")) {
      problem_ = "the accounts are wrong";
    }
    return problem_;
  }

 private:
  static constexpr unsigned char poison = 0xEE;
  static constexpr std::size_t largest_nbytes = std::size_t{128} << 10;

  struct Loan {
    std::shared_ptr<PinnedLease> lease;
    unsigned char value;
  };

  // Memory fresh from the pool is its holder's alone.
  void take() {
    constexpr std::size_t sizes[] = {20000, 20000, 40960, largest_nbytes};
    auto lease = pool_->lease(scope_, sizes[random_() % 4]);
    if (lease == nullptr) return;
    const auto value = static_cast<unsigned char>(1 + random_() % 200);
    fill(*lease, value);
    loans_.push_back({std::move(lease), value});
  }

  void let_go(std::uint64_t how) {
    if (loans_.empty()) return;
    const std::size_t at = random_() % loans_.size();
    check(loans_[at]);
    const std::shared_ptr<PinnedLease> lease = std::move(loans_[at].lease);
    loans_.erase(loans_.begin() + static_cast<std::ptrdiff_t>(at));
    switch (how) {
      case 0:  // a copy of ours, which retires behind an event
        return copy_ourselves(lease);
      case 1: {  // by somebody whose streams are known
        lease->expose();
        const std::size_t stream = random_() % (known_.size() + 1);
        copies_to_host(lease->data(), source_, lease->nbytes(),
                       stream < known_.size() ? known_[stream] : cuda::legacy_stream());
        return;
      }
      case 2:  // by somebody who says so
        copies_to_host(lease->data(), source_, lease->nbytes(), unknown_);
        lease->hold(scope_, unknown_);
        return;
      default:  // by nobody
        return;
    }
  }

  void copy_ourselves(const std::shared_ptr<PinnedLease>& lease) {
    const CUstream stream = runtime_.copy_stream(scope_, cuda::Direction::to_host, known_.front());
    auto done = std::make_shared<cuda::Event>(runtime_.events().take(scope_, cuda::EventUse::ordering));
    runtime_.functions().cuMemcpyDtoHAsync(lease->data(), source_, lease->nbytes(), stream);
    done->record(stream);
    queue_.add({std::move(done), {}, {lease}, {}});
  }

  void check(const Loan& loan) {
    if (problem_.empty() && !holds(*loan.lease, loan.value)) problem_ = "memory on loan was overwritten";
  }
  void check_all() {
    for (const Loan& loan : loans_) check(loan);
  }

  cuda::Runtime& runtime_;
  cuda::ContextScope scope_;
  std::vector<CUstream> known_;
  CUstream unknown_;
  int steps_;
  std::mt19937_64 random_;
  std::shared_ptr<PinnedPool> pool_;
  RetireQueue queue_;
  CUdeviceptr source_ = 0;
  std::vector<Loan> loans_;
  std::string problem_;
};

// A fixture that runs such programs, each in a world of its own.
class OnRandomPrograms : public OnRuntime {
 protected:
  std::string run(const Program& program) {
    end_world();
    begin({});
    schedule(program.schedule, program.seed);
    const std::vector<CUstream> known{torch_stream(), torch_stream()};
    const std::string problem = RandomProgram(*runtime_, *primaries_, known, unknown_stream(), program).run();
    return problem.empty() ? cuda::test::fake_text("fake_violations") : problem;
  }
  // How many of so many seeds show a problem; says which is the first.
  int problems(Program program, std::uint64_t seeds) {
    int count = 0;
    for (program.seed = 1; program.seed <= seeds; ++program.seed) {
      const std::string problem = run(program);
      if (problem.empty()) continue;
      if (count++ == 0) first_ = std::string(program.schedule) + " " + std::to_string(program.seed) + ": " + problem;
    }
    return count;
  }

  std::string first_;

 private:
  void end_world() {
    drain();
    streams_.clear();
    runtime_.reset();
    primaries_.reset();
  }
};

}  // namespace ferry::test
