#include "bench/raw/raw_ring.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <immintrin.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "bench/raw/axpy.h"
#include "common/buffer.h"

namespace leeway {
namespace {

// The largest size of a piece. It divides every larger size that is measured.
constexpr uint64_t kPieceBytesMax = 1 << 20;
constexpr size_t kHeadBytes = 4096;
constexpr float kRingScale = 1e-6f;

// Spins, and yields the processor if the wait takes long, because there may be fewer cores than
// processes.
class Spin {
 public:
  void Wait() {
    _mm_pause();
    if (++turns_ % 4096 == 0) sched_yield();
  }

 private:
  uint32_t turns_ = 0;
};

// Divides a vector of one end of the ring into pieces.
struct Pieces {
  Pieces(const TransferPlan& plan, uint64_t piece)
      : values(plan.total_floats()), piece_floats(piece), count(plan.total_floats() / piece) {}
  std::span<float> At(uint64_t number) {
    return values.span().subspan(number % count * piece_floats, piece_floats);
  }
  FloatBuffer values;
  const uint64_t piece_floats;
  const uint64_t count;
};

void Copy(std::span<const float> from, std::span<float> to) {
  std::memcpy(to.data(), from.data(), to.size_bytes());
}

class RingServer {
 public:
  RingServer(std::shared_ptr<RawRings> rings, const TransferPlan& plan)
      : rings_(std::move(rings)), method_(plan.method), parameters_(plan, rings_->piece_floats()) {}

  void Serve() {
    RawRings::Head& head = rings_->head();
    const bool takes = method_ != TransferMethod::kPull;
    const bool gives = method_ != TransferMethod::kPush;
    Spin spin;
    uint64_t i = 0;
    while (i < head.last.load(std::memory_order_acquire)) {
      if ((takes && head.up.empty()) || (gives && head.down.full())) {
        spin.Wait();
        continue;
      }
      if (takes) {
        AddScaled(kRingScale, rings_->UpSlot(i), parameters_.At(i));
        head.up.read.store(i + 1, std::memory_order_release);
      }
      if (gives) {
        Copy(parameters_.At(i), rings_->DownSlot(i));
        head.down.written.store(i + 1, std::memory_order_release);
      }
      ++i;
    }
  }

 private:
  const std::shared_ptr<RawRings> rings_;
  const TransferMethod method_;
  Pieces parameters_;
};

class RingClient {
 public:
  RingClient(std::shared_ptr<RawRings> rings, const TransferPlan& plan)
      : rings_(std::move(rings)),
        method_(plan.method),
        pieces_a_message_(plan.message_floats() / rings_->piece_floats()),
        contribution_(plan, rings_->piece_floats()),
        weights_(plan, rings_->piece_floats()) {
    for (float& value : contribution_.values.span()) value = 1;
  }

  // Returns the number of whole messages moved.
  uint64_t Run(Time deadline) {
    RawRings::Head& head = rings_->head();
    const bool gives = method_ != TransferMethod::kPull;
    const bool takes = method_ != TransferMethod::kPush;
    uint64_t given = 0;
    uint64_t taken = 0;
    uint64_t last = ~uint64_t{0};
    Spin spin;
    while (given < last || (takes && taken < last)) {
      bool idle = true;
      if (last == ~uint64_t{0} && std::chrono::steady_clock::now() >= deadline) {
        last = NextWhole(gives ? given : taken);
        head.last.store(last, std::memory_order_release);
      }
      if (gives && given < last && !head.up.full()) {
        Copy(contribution_.At(given), rings_->UpSlot(given));
        head.up.written.store(++given, std::memory_order_release);
        idle = false;
      }
      if (takes && taken < last && !head.down.empty()) {
        Copy(rings_->DownSlot(taken), weights_.At(taken));
        head.down.read.store(++taken, std::memory_order_release);
        idle = false;
      }
      if (!gives) given = taken;
      if (idle) spin.Wait();
    }
    while (gives && head.up.read.load(std::memory_order_acquire) < last) spin.Wait();
    return last / pieces_a_message_;
  }

  // Call this between rounds, when neither process is in a round.
  void Reset() {
    RawRings::Head& head = rings_->head();
    for (auto* count : {&head.up.written, &head.up.read, &head.down.written, &head.down.read}) {
      count->store(0);
    }
    head.last.store(~uint64_t{0});
  }

 private:
  // Returns the number of pieces after which the round can end with a whole message. In a pull the
  // server may be a whole ring ahead of the client.
  uint64_t NextWhole(uint64_t pieces) const {
    const uint64_t at_least =
        pieces + (method_ == TransferMethod::kPull ? RawRings::Ring::kSlots + 1 : 0);
    return (at_least + pieces_a_message_ - 1) / pieces_a_message_ * pieces_a_message_;
  }

  const std::shared_ptr<RawRings> rings_;
  const TransferMethod method_;
  const uint64_t pieces_a_message_;
  Pieces contribution_;
  Pieces weights_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<RawRings>> RawRings::Make(const TransferPlan& plan) {
  std::shared_ptr<RawRings> rings(new RawRings);
  uint64_t piece = plan.message_bytes;
  while (piece > kPieceBytesMax && piece % 128 == 0) piece /= 2;
  rings->piece_floats_ = piece / sizeof(float);
  rings->bytes_ = kHeadBytes + 2 * Ring::kSlots * piece;
  const int fd = memfd_create("leeway-bench", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(rings->bytes_)) != 0) {
    const int error = errno;
    if (fd >= 0) close(fd);
    return absl::InternalError(absl::StrCat("memfd: ", strerror(error)));
  }
  rings->memory_ = mmap(nullptr, rings->bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (rings->memory_ == MAP_FAILED) {
    rings->memory_ = nullptr;
    return absl::InternalError(absl::StrCat("mmap: ", strerror(errno)));
  }
  rings->head_ = new (rings->memory_) Head;
  rings->slots_ = reinterpret_cast<float*>(static_cast<char*>(rings->memory_) + kHeadBytes);
  return rings;
}

RawRings::~RawRings() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

BenchService RawRingServer(std::shared_ptr<RawRings> rings, const TransferPlan& plan) {
  auto server = std::make_shared<RingServer>(std::move(rings), plan);
  return {.hello = Json::object(), .handle = [server](const Json&) -> absl::StatusOr<Json> {
            server->Serve();
            return Json::object();
          }};
}

BenchService RawRingClient(std::shared_ptr<RawRings> rings, const TransferPlan& plan) {
  auto client = std::make_shared<RingClient>(std::move(rings), plan);
  return {.hello = Json::object(), .handle = [client](const Json& request) -> absl::StatusOr<Json> {
            if (request.contains("reset")) {
              client->Reset();
              return Json::object();
            }
            const Time began = std::chrono::steady_clock::now();
            const uint64_t messages = client->Run(began + FromSeconds(request.value("round", 0.0)));
            const double seconds = Seconds(std::chrono::steady_clock::now() - began);
            return Json{{"messages", messages}, {"seconds", seconds}};
          }};
}

}  // namespace leeway
