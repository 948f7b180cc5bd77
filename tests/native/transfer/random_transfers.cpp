#include "random_transfers.hpp"

#include <array>
#include <deque>

#include "transfer_world.hpp"

namespace ferry::test {
namespace {

constexpr std::array dtypes{DType::uint8, DType::bfloat16, DType::float32, DType::int64, DType::complex128};

// Staging that is in use, and layouts that take too many pieces.
bool is_allowed(const std::string& refused) {
  return refused.find(" a snapshot") != std::string::npos || refused.find("a snapshot of") == 0 ||
         refused.find("more than 1024 pieces") != std::string::npos;
}

class Story {
 public:
  Story(const char* schedule, std::uint32_t seed)
      : random_(seed), world_({schedule, seed, {"two_devices"}, limits(seed)}), batch_(fresh_batch()) {
    cuda::test::use_device(1);
    cuda::test::use_device(0);
    for (const int device : {0, 1}) {
      for (const unsigned flags : {0U, 1U, 1U}) streams_.push_back({world_.made_stream(flags, device), device});
      streams_.push_back({cuda::legacy_stream(), device});
      streams_.push_back({cuda::per_thread_stream(), device});
    }
  }

  std::string tell() {
    for (std::int64_t left = random_.between(1, 7); left > 0; --left) {
      switch (random_.between(0, 6)) {
        case 0:
          download_through_ring();
          break;
        case 1:
          upload_through_ring();
          break;
        case 2:
          upload_pinned();
          break;
        default:
          download();
          break;
      }
      if (random_.between(0, 2) == 0) finish();
    }
    finish();
    world_.settle();
    for (const Sent& sent : sent_) {
      problems_ += difference(values_on_device(sent.tensor, *sent.image), sent.wanted, "an upload");
    }
    batch_.reset();
    sent_.clear();
    return problems_ + world_.end();
  }

 private:
  static TransferLimits limits(std::uint32_t seed) {
    TransferLimits limits = small_limits();
    limits.kernels = seed % 2 == 1;
    return limits;
  }

  struct Place {
    CUstream stream;
    int device;
  };
  struct Awaited {
    HostTarget target;
    std::vector<std::byte> wanted;
    std::vector<std::byte> around;  // what the block holds when all is done
  };
  struct Sent {
    DeviceTensor tensor;
    std::shared_ptr<Strided> image;
    std::vector<std::byte> wanted;
    HostTarget source;
  };

  std::unique_ptr<Transfers::Batch> fresh_batch() { return std::make_unique<Transfers::Batch>(world_.transfers()); }

  Extents shape() {
    Extents shape = random_shape(random_, static_cast<int>(random_.between(0, 4)));
    if (shape.size() > 0 && random_.between(0, 2) == 0) {
      shape[static_cast<int>(random_.between(0, shape.size() - 1))] = random_.between(6, 60);
    }
    if (shape.size() > 0 && random_.between(0, 30) == 0) shape[0] = 0;
    return shape;
  }

  Strided strided(DType dtype, const Extents& shape) {
    if (element_count(shape) == 0 || random_.between(0, 2) == 0) return packed_image(random_, dtype, shape);
    return random_strided(random_, dtype, shape);
  }

  // With the memory's address fixed, since the layout points into it.
  std::shared_ptr<Strided> source_image(DType dtype, const Extents& shape) {
    auto image = std::make_shared<Strided>(strided(dtype, shape));
    if (shape.size() > 0 && random_.between(0, 4) == 0) {
      image->ref.layout.strides[static_cast<int>(random_.between(0, shape.size() - 1))] = 0;
    }
    return image;
  }

  Place place() { return streams_[static_cast<std::size_t>(random_.between(0, 9))]; }
  DType dtype() { return dtypes[static_cast<std::size_t>(random_.between(0, 4))]; }

  // The next kernel of the producer writes into the tensor, then its memory goes.
  void change_and_free(DeviceTensor& tensor) {
    std::vector<std::byte> other(world_.memory_of(tensor).nbytes());
    for (std::byte& byte : other) byte = static_cast<std::byte>(random_.bits());
    if (random_.between(0, 3) != 0) world_.memory_of(tensor).write_later(other, tensor.stream);
    if (random_.between(0, 1) == 0) tensor.owner.reset();
  }

  void download() {
    const auto [stream, device] = place();
    const DType type = dtype();
    const Extents size = shape();
    const auto image = source_image(type, size);
    DeviceTensor tensor = world_.tensor(*image, stream, device);
    const Strided like = strided(type, size);
    Awaited awaited{world_.target(like, device), values_of(image->ref), like.memory};
    const auto snapshot = static_cast<Snapshot>(random_.between(0, 2));
    const auto pressure = static_cast<BackPressure>(random_.between(0, 2));
    const std::string refused = error_text([&] { batch_->download(tensor, awaited.target, snapshot, pressure); });
    change_and_free(tensor);
    if (refused.empty()) {
      TensorRef inside = like.ref;
      inside.data = awaited.around.data() + (like.ref.data - like.memory.data());
      const std::int64_t itemsize = inside.layout.itemsize;
      for (std::int64_t flat = 0; flat < element_count(size).value(); ++flat) {
        std::memcpy(inside.data + offset_of(inside.layout, flat), awaited.wanted.data() + flat * itemsize,
                    static_cast<std::size_t>(itemsize));
      }
      awaited_.push_back(std::move(awaited));
    } else if (!is_allowed(refused)) {
      problems_ += "a download was refused: " + refused + "\n";
    }
  }

  void download_through_ring() {
    const auto [stream, device] = place();
    const DType type = dtype();
    const Extents size = shape();
    const auto image = source_image(type, size);
    DeviceTensor tensor = world_.tensor(*image, stream, device);
    const Strided destination = strided(type, size);
    problems_ += error_text([&] { world_.transfers().download_through_ring(tensor, destination.ref); });
    problems_ += difference(values_of(destination.ref), values_of(image->ref), "a download through the ring");
    change_and_free(tensor);
  }

  void upload_through_ring() {
    const auto [stream, device] = place();
    const DType type = dtype();
    const Extents size = shape();
    Sent sent{{}, std::make_shared<Strided>(strided(type, size)), {}, {}};
    sent.tensor = world_.tensor(*sent.image, stream, device);
    const auto source = source_image(type, size);
    sent.wanted = values_of(source->ref);
    problems_ += error_text([&] {
      auto pending =
          random_.between(0, 2) == 0
              ? nullptr
              : world_.transfers().upload(sent.tensor, {source->ref, nullptr, nullptr, {}}, HostMemory::ordinary);
      if (!pending) pending = world_.transfers().upload_through_ring(sent.tensor, source->ref);
      for (std::byte& byte : source->memory) byte = static_cast<std::byte>(random_.bits());
      if (random_.between(0, 1) == 0) pending->wait();
    });
    sent_.push_back(std::move(sent));
  }

  void upload_pinned() {
    const auto [stream, device] = place();
    const DType type = dtype();
    const Extents size = shape();
    Sent sent{{}, std::make_shared<Strided>(strided(type, size)), {}, {}};
    sent.tensor = world_.tensor(*sent.image, stream, device);
    sent.source = world_.target(strided(type, size), device);
    sent.wanted = values_of(sent.source.ref);
    if (random_.between(0, 1) == 0) {
      problems_ += error_text([&] {
        if (!world_.transfers().upload(sent.tensor, sent.source, HostMemory::pinned)) return;
        std::fill_n(sent.source.lease->data(), sent.source.lease->nbytes(), std::byte{0x5A});
        sent.source = {};
        sent_.push_back(std::move(sent));
      });
      return;
    }
    const std::string refused = error_text([&] { batch_->upload_pinned(sent.tensor, sent.source); });
    if (is_allowed(refused)) return;
    problems_ += refused;
    sent.source = {};  // what is enqueued holds it
    sent_.push_back(std::move(sent));
  }

  void finish() {
    problems_ += error_text([&] {
      const auto pending = batch_->close();
      switch (random_.between(0, 2)) {
        case 0:
          while (!pending->done()) std::this_thread::yield();
          break;
        case 1:
          if (!pending->wait_for(std::chrono::seconds(20))) problems_ += "a wait took too long\n";
          break;
        default:
          pending->wait();
          break;
      }
    });
    for (const Awaited& awaited : awaited_) {
      problems_ += difference(values_of(awaited.target.ref), awaited.wanted, "a download");
      const std::byte* const block = awaited.target.lease->data();
      problems_ += difference({block, block + awaited.around.size()}, awaited.around, "around a download");
    }
    awaited_.clear();
  }

  Random random_;
  TransferWorld world_;
  std::unique_ptr<Transfers::Batch> batch_;
  std::vector<Place> streams_;
  std::vector<Awaited> awaited_;
  std::vector<Sent> sent_;
  std::string problems_;
};

}  // namespace

std::string random_transfers(const char* schedule, std::uint32_t seed, std::uint64_t* order) {
  Story story(schedule, seed);
  std::string said = story.tell();
  if (order != nullptr) *order = cuda::test::fake<std::uint64_t()>("fake_order")();
  return said;
}

}  // namespace ferry::test
