#include "common/shm/shared_memory.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/status.h"
#include "tests/catch.h"
#include "tests/common/forked.h"
#include "tests/skip.h"
#include "tests/temp_folder.h"

namespace leeway::shared_memory {
namespace {

using Catch::Matchers::Contains;

constexpr uint64_t kPage = 4096;

std::shared_ptr<SharedArena> Arena(uint64_t bytes) {
  absl::StatusOr<std::shared_ptr<SharedArena>> arena = SharedArena::Create(bytes);
  if (!arena.ok()) FAIL(arena.status());
  return *arena;
}

absl::Status MapError(const v1::MemoryOffer& offer) { return SharedMapping::Map(offer).status(); }

// Checks that the status has the code and the words.
void RequireRefused(const absl::Status& status, absl::StatusCode code, const std::string& words) {
  INFO(status);
  REQUIRE(status.code() == code);
  REQUIRE_THAT(std::string(status.message()), Contains(words));
}

// Makes an arena in a child, with `size` floats 0, 1, 2, ... The offer is the first part of the
// answer.
std::string OfferFloats(size_t size) {
  // Never freed, because the process ends by being killed.
  auto* arena = new std::shared_ptr<SharedArena>(*SharedArena::Create(size * sizeof(float)));
  auto* floats = new FloatBuffer(MakeFloats(arena->get(), size));
  for (size_t i = 0; i < size; ++i) floats->data()[i] = static_cast<float>(i);
  return (*arena)->Offer().SerializeAsString();
}

v1::MemoryOffer ParseOffer(const std::string& text) {
  v1::MemoryOffer offer;
  REQUIRE(offer.ParseFromString(text));
  return offer;
}

TEST_CASE("what is written into an arena is read in another process's mapping of it") {
  const Forked owner([] { return OfferFloats(1000); });
  const auto mapping = SharedMapping::Map(ParseOffer(owner.answer()));
  if (!mapping.ok()) FAIL(mapping.status());
  const auto floats = (*mapping)->Floats(kPage, 1000 * sizeof(float));
  REQUIRE(floats.ok());
  REQUIRE(floats->size() == 1000);
  REQUIRE((*floats)[0] == 0.0F);
  REQUIRE((*floats)[999] == 999.0F);
}

TEST_CASE("when the owner is killed its memory stays readable, and cannot be mapped again") {
  Forked owner([] { return OfferFloats(1 << 20); });
  const v1::MemoryOffer offer = ParseOffer(owner.answer());
  const auto mapping = SharedMapping::Map(offer);
  REQUIRE(mapping.ok());
  owner.Kill();
  const auto floats = (*mapping)->Floats(kPage, sizeof(float) << 20);
  REQUIRE(floats.ok());
  for (size_t i = 0; i < floats->size(); i += 1024) REQUIRE((*floats)[i] == static_cast<float>(i));
  RequireRefused(MapError(offer), absl::StatusCode::kNotFound, "does not exist here");
}

TEST_CASE("when the peer is killed the owner goes on, and its arena is freed") {
  auto arena = Arena(kPage);
  Forked peer([&] { return std::string(SharedMapping::Map(arena->Offer()).ok() ? "y" : "n"); });
  REQUIRE(peer.answer() == "y");
  peer.Kill();
  const FloatBuffer floats = MakeFloats(arena.get(), 16);
  REQUIRE(arena->Contains(floats.data()));
}

TEST_CASE("offers that are not what they say are refused with the reason") {
  const auto arena = Arena(kPage);
  v1::MemoryOffer offer = arena->Offer();
  REQUIRE(MapError(offer).ok());

  SECTION("another nonce") {
    offer.set_nonce(offer.nonce() + 1);
    RequireRefused(MapError(offer), absl::StatusCode::kFailedPrecondition, "another host");
  }
  SECTION("no such file") {
    offer.set_fd(1000000);
    RequireRefused(MapError(offer), absl::StatusCode::kNotFound, "no open file 1000000");
  }
  SECTION("no such process") {
    offer.set_pid(~0U);
    RequireRefused(MapError(offer), absl::StatusCode::kNotFound, "does not exist here");
  }
  SECTION("more than there is") {
    offer.set_bytes(offer.bytes() + 1);
    RequireRefused(MapError(offer), absl::StatusCode::kFailedPrecondition, "the offer says 8193");
  }
  SECTION("sizes that cannot be") {
    for (const uint64_t bytes : {uint64_t{0}, kPage - 1, kSharedBytesMax + 1, ~uint64_t{0}}) {
      offer.set_bytes(bytes);
      RequireRefused(MapError(offer), absl::StatusCode::kInvalidArgument, "bytes are offered");
    }
  }
}

TEST_CASE("files that are not sealed memory are refused") {
  v1::MemoryOffer offer;
  offer.set_pid(static_cast<uint32_t>(getpid()));
  offer.set_bytes(kPage);
  const auto refused = [&](int file) {
    offer.set_fd(static_cast<uint32_t>(file));
    return MapError(offer);
  };
  SECTION("a file") {
    const Descriptor file(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    RequireRefused(refused(*file), absl::StatusCode::kFailedPrecondition, "not shared memory");
  }
  SECTION("a pipe, without waiting for its writer") {
    const TempFolder folder;
    REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
    const Descriptor file(open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    RequireRefused(refused(*file), absl::StatusCode::kFailedPrecondition, "not shared memory");
  }
  SECTION("memory that may shrink") {
    const Descriptor file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    REQUIRE(ftruncate(*file, kPage) == 0);
    RequireRefused(refused(*file), absl::StatusCode::kFailedPrecondition, "not sealed");
  }
}

TEST_CASE("another user's memory is refused, also to root") {
  const Forked other([]() -> std::string {
    if (setresuid(65534, 65534, 65534) != 0) return "";
    prctl(PR_SET_DUMPABLE, 1);
    return OfferFloats(16);
  });
  if (other.answer().empty()) SKIP("only root may become another user");
  RequireRefused(MapError(ParseOffer(other.answer())), absl::StatusCode::kPermissionDenied,
                 "user 65534");
}

TEST_CASE("ranges outside of the memory, in its header, or across floats are refused") {
  const auto arena = Arena(4 * kPage);
  const auto mapping = SharedMapping::Map(arena->Offer());
  REQUIRE(mapping.ok());
  const uint64_t end = arena->Offer().bytes();
  REQUIRE((*mapping)->Floats(kPage, 4 * kPage).ok());
  REQUIRE((*mapping)->Floats(end, 0).ok());
  REQUIRE((*mapping)->Floats(end - 4, 4).ok());
  const uint64_t top = ~uint64_t{3};
  for (const auto& [offset, bytes] : std::vector<std::pair<uint64_t, uint64_t>>{{0, 4},
                                                                                {kPage - 4, 8},
                                                                                {kPage + 2, 4},
                                                                                {kPage, 6},
                                                                                {end - 4, 8},
                                                                                {end + 4, 0},
                                                                                {kPage, end},
                                                                                {top, 8},
                                                                                {kPage, top},
                                                                                {top, top}}) {
    INFO(offset << " " << bytes);
    RequireRefused((*mapping)->Floats(offset, bytes).status(), absl::StatusCode::kInvalidArgument,
                   "are not aligned floats");
  }
}

TEST_CASE("words are those that the owner writes, within the memory and aligned") {
  const auto arena = Arena(2 * kPage);
  const auto memory = arena->Allocate(2 * kPage);
  REQUIRE(memory.ok());
  auto* words = reinterpret_cast<std::atomic<uint64_t>*>(memory->get());
  words[0].store(7);
  words[1].store(8);
  const auto mapping = SharedMapping::Map(arena->Offer());
  REQUIRE(mapping.ok());
  const auto found = (*mapping)->Words(kPage, 2);
  REQUIRE(found.ok());
  CHECK((*found)[0].load() == 7);
  words[1].store(9);
  CHECK((*found)[1].load() == 9);
  REQUIRE((*mapping)->Words(kPage, 2 * kPage / 8).ok());
  const uint64_t end = arena->Offer().bytes(), many = uint64_t{1} << 61;
  for (const auto& [offset, count] :
       std::vector<std::pair<uint64_t, uint64_t>>{{0, 1},
                                                  {kPage - 8, 2},
                                                  {kPage + 4, 1},
                                                  {end - 8, 2},
                                                  {end + 8, 0},
                                                  {kPage, many + 1},
                                                  {kPage, ~uint64_t{0}},
                                                  {~uint64_t{7}, 1}}) {
    INFO(offset << " " << count);
    RequireRefused((*mapping)->Words(offset, count).status(), absl::StatusCode::kInvalidArgument,
                   "are not aligned or not inside the shared memory");
  }
}

TEST_CASE("a full arena says so, and what is given back is taken again") {
  const auto arena = Arena(4 * kPage);
  auto first = arena->Allocate(2 * kPage);
  auto second = arena->Allocate(kPage + 1);
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  REQUIRE(arena->OffsetOf(first->get()) == kPage);
  REQUIRE(arena->OffsetOf(second->get()) == 3 * kPage);
  RequireRefused(arena->Allocate(1).status(), absl::StatusCode::kResourceExhausted,
                 "contiguous free bytes");
  RequireRefused(arena->Allocate(~uint64_t{0}).status(), absl::StatusCode::kResourceExhausted, "");

  SECTION("alone") {
    std::byte* const before = first->get();
    *first = nullptr;
    first = arena->Allocate(100);
    REQUIRE(first->get() == before);
    REQUIRE(arena->Allocate(kPage).ok());
  }
  SECTION("joined, in either order") {
    const bool in_order = GENERATE(true, false);
    (in_order ? *first : *second) = nullptr;
    (in_order ? *second : *first) = nullptr;
    REQUIRE(arena->Allocate(4 * kPage).ok());
  }
}

TEST_CASE("floats are zeroed, in the arena while it has room and then on the heap") {
  const auto arena = Arena(kPage);
  FloatBuffer shared = MakeFloats(arena.get(), 100);
  REQUIRE(arena->Contains(shared.data()));
  FloatBuffer heap = MakeFloats(arena.get(), 100);
  REQUIRE_FALSE(arena->Contains(heap.data()));
  REQUIRE(MakeFloats(nullptr, 0).size() == 0);
  std::fill_n(shared.data(), 100, 1.0F);

  const FloatBuffer moved = std::move(shared);
  REQUIRE(shared.size() == 0);
  REQUIRE(shared.data() == nullptr);
  REQUIRE(moved.data()[99] == 1.0F);
  shared = FloatBuffer();
  heap = FloatBuffer();
  REQUIRE_FALSE(arena->Allocate(1).ok());
}

TEST_CASE("memory that was used before comes zeroed as floats") {
  const auto arena = Arena(kPage);
  {
    FloatBuffer used = MakeFloats(arena.get(), 100);
    std::fill_n(used.data(), 100, 1.0F);
  }
  const FloatBuffer again = MakeFloats(arena.get(), 100);
  REQUIRE(arena->Contains(again.data()));
  REQUIRE(std::count(again.data(), again.data() + 100, 0.0F) == 100);
}

TEST_CASE("memory of an arena outlives the arena's last holder") {
  auto arena = Arena(kPage);
  FloatBuffer floats = MakeFloats(arena.get(), 100);
  arena = nullptr;
  floats.data()[99] = 1.0F;
  REQUIRE(floats.data()[99] == 1.0F);
}

TEST_CASE("an arena of more than can be is refused, a large one costs nothing until it is used") {
  RequireRefused(SharedArena::Create(~uint64_t{0}).status(), absl::StatusCode::kInvalidArgument,
                 "the maximum is");
  const auto arena = Arena(uint64_t{1} << 38);
  REQUIRE(arena->Allocate(kPage).ok());
}

TEST_CASE("a reader sees a session until its owner closes it, and never a later one in its place") {
  const auto arena = Arena(kPage);
  const auto mapping = SharedMapping::Map(arena->Offer());
  REQUIRE(mapping.ok());
  const auto first = arena->OpenSession();
  const auto second = arena->OpenSession();
  REQUIRE(first.ok());
  REQUIRE((*mapping)->SessionStands(*first));
  REQUIRE((*mapping)->SessionStands(*second));
  arena->CloseSession(*first);
  REQUIRE_FALSE((*mapping)->SessionStands(*first));
  REQUIRE((*mapping)->SessionStands(*second));

  const auto third = arena->OpenSession();
  REQUIRE(third->offset == first->offset);
  REQUIRE_FALSE((*mapping)->SessionStands(*first));
  // A closed session stays closed.
  arena->CloseSession(*first);
  REQUIRE((*mapping)->SessionStands(*third));
}

TEST_CASE("what cannot be a session does not stand") {
  const auto arena = Arena(kPage);
  const auto mapping = SharedMapping::Map(arena->Offer());
  REQUIRE(mapping.ok());
  REQUIRE_FALSE((*mapping)->SessionStands({0, arena->Offer().nonce()}));
  REQUIRE_FALSE((*mapping)->SessionStands({8, 0}));
  for (const uint64_t offset : {uint64_t{9}, kPage, ~uint64_t{7}}) {
    REQUIRE_FALSE((*mapping)->SessionStands({offset, 1}));
  }
}

TEST_CASE("sessions are unique, and there are 511") {
  const auto arena = Arena(kPage);
  std::set<uint64_t> offsets;
  std::set<uint64_t> numbers;
  for (int i = 0; i < 511; ++i) {
    const auto session = arena->OpenSession();
    REQUIRE(session.ok());
    offsets.insert(session->offset);
    numbers.insert(session->number);
  }
  REQUIRE(offsets.size() == 511);
  REQUIRE(*offsets.rbegin() == kPage - 8);
  REQUIRE(numbers.size() == 511);
  REQUIRE(numbers.count(0) == 0);
  RequireRefused(arena->OpenSession().status(), absl::StatusCode::kResourceExhausted, "all 511");
}

TEST_CASE("a copy during which its session stood is whole, however the owner writes") {
  constexpr ptrdiff_t kFloats = 64 << 10;
  constexpr int kCopies = 2000;
  const auto arena = Arena(kFloats * sizeof(float));
  const auto mapping = SharedMapping::Map(arena->Offer());
  REQUIRE(mapping.ok());
  FloatBuffer block = MakeFloats(arena.get(), kFloats);
  // The session, once the reader is told of it.
  Mutex mutex;
  SharedSession told = *arena->OpenSession();
  std::atomic<bool> done{false};

  std::thread owner([&] {
    SharedSession open = told;
    for (int round = 1; !done; ++round) {
      arena->CloseSession(open);
      std::fill_n(block.data(), kFloats, static_cast<float>(round));
      open = *arena->OpenSession();
      MutexLock lock(mutex);
      told = open;
    }
  });
  std::vector<float> copy(kFloats);
  const auto source = (*mapping)->Floats(kPage, kFloats * sizeof(float));
  int torn = 0;
  const auto read = [&] {
    SharedSession session;
    {
      MutexLock lock(mutex);
      session = told;
    }
    std::memcpy(copy.data(), source->data(), source->size_bytes());
    if (!(*mapping)->SessionStands(session)) return false;
    torn += std::count(copy.begin(), copy.end(), copy[0]) != kFloats;
    return true;
  };
  for (int i = 0; i < kCopies; ++i) read();
  done = true;
  owner.join();
  REQUIRE(read());
  REQUIRE(torn == 0);
}

TEST_CASE("threads allocate ranges that do not overlap") {
  constexpr int kThreads = 4;
  constexpr int kRounds = 500;
  const auto arena = Arena(64 * kPage);
  std::atomic<int> spoiled{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) {
        const uint64_t bytes = (1 + (round + t) % 9) * kPage;
        const auto range = arena->Allocate(bytes);
        if (!range.ok()) continue;
        const auto mark = static_cast<std::byte>(t + 1);
        std::fill_n(range->get(), bytes, mark);
        spoiled +=
            std::count(range->get(), range->get() + bytes, mark) != static_cast<ptrdiff_t>(bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(spoiled == 0);
  REQUIRE(arena->Allocate(64 * kPage).ok());
}

}  // namespace
}  // namespace leeway::shared_memory
