// The bookkeeping of streams, events and errors, on a runtime whose events are done when the test
// says so.
#include "worker/device/cuda/queue.h"

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/worker/device/cuda/host_runtime.h"
#include "tests/worker/device/says.h"
#include "worker/device/cuda/cuda_backend.h"

namespace leeway::cuda::queue {
namespace {

using testing::Says;

using testing::HostRuntimeCounts;
using testing::MakeHostRuntime;

// The state that a test's script and the runtime share.
struct Script {
  // For each event: the stream of its latest record, and the record's number in that stream.
  struct Recorded {
    Stream stream = Stream::kCompute;
    uint64_t place = 0;
  };
  std::map<void*, Recorded> events;
  // By stream: how many records were made, and how many are done.
  std::map<Stream, uint64_t> recorded;
  std::map<Stream, uint64_t> done;
  std::vector<std::string> waits;
  // What every call from now on returns; 0: success.
  Code broken = 0;
  // What Query, Await and AwaitAll return.
  Code failed = 0;
  int made = 0;
  int queued = 0;
};

class ScriptRuntime final : public Runtime {
 public:
  explicit ScriptRuntime(Script& script) : script_(script) {}
  ~ScriptRuntime() override { CHECK(script_.events.empty()); }

  std::string device() const override { return "cuda:7, a script"; }
  std::string Describe(Code code) const override { return "error " + std::to_string(code); }
  Code Allocate(size_t, void**) override { return script_.broken; }
  Code Free(void*) override { return script_.broken; }
  Code MemoryLeft(size_t*, size_t*) override { return script_.broken; }
  Code Pin(void*, size_t) override { return script_.broken; }
  Code Unpin(void*) override { return script_.broken; }
  Code CopyUp(Stream, const void*, void*, size_t) override { return Work(); }
  Code CopyDown(Stream, const void*, void*, size_t) override { return Work(); }
  Code CopyInside(const void*, void*, size_t) override { return Work(); }
  Code Multiply(const BlasProduct&) override { return Work(); }
  Code BeforeLaunch() override { return script_.broken; }
  Code AfterLaunch() override { return Work(); }
  void* native(Stream) override { return nullptr; }

  Code MakeEvent(void** event) override {
    *event = new char;
    script_.events[*event] = {};
    ++script_.made;
    return script_.broken;
  }
  Code DestroyEvent(void* event) override {
    script_.events.erase(event);
    delete static_cast<char*>(event);
    return kSuccess;
  }
  Code Record(void* event, Stream stream) override {
    script_.events[event] = {stream, ++script_.recorded[stream]};
    return script_.broken;
  }
  Code Wait(Stream stream, void* event) override {
    const Script::Recorded& recorded = script_.events[event];
    script_.waits.push_back(std::to_string(static_cast<int>(stream)) + " for " +
                            std::to_string(static_cast<int>(recorded.stream)) + "/" +
                            std::to_string(recorded.place));
    return script_.broken;
  }
  Code Query(void* event) override {
    if (script_.failed != 0) return script_.failed;
    const Script::Recorded& recorded = script_.events[event];
    return script_.done[recorded.stream] >= recorded.place ? kSuccess : kNotReady;
  }
  Code Await(void* event) override {
    if (script_.failed != 0) return script_.failed;
    const Script::Recorded& recorded = script_.events[event];
    script_.done[recorded.stream] = std::max(script_.done[recorded.stream], recorded.place);
    return kSuccess;
  }
  Code AwaitAll() override { return script_.failed; }

 private:
  Code Work() {
    ++script_.queued;
    return script_.broken;
  }

  Script& script_;
};

struct Rig {
  explicit Rig(bool blocking = false) : queue(std::make_unique<ScriptRuntime>(script), blocking) {}

  Script script;
  Queue queue;
  float memory[4] = {};
};

TEST_CASE("an event is done when its own stream has come to it, and stays done") {
  Rig rig;
  const StreamEvent first = rig.queue.Record(Stream::kUp);
  const StreamEvent second = rig.queue.Record(Stream::kUp);
  const StreamEvent other = rig.queue.Record(Stream::kDown);
  CHECK(rig.queue.Done({}));
  CHECK_FALSE(rig.queue.Done(first));
  rig.script.done[Stream::kUp] = 1;
  CHECK(rig.queue.Done(first));
  CHECK_FALSE(rig.queue.Done(second));
  CHECK_FALSE(rig.queue.Done(other));
  CHECK(rig.queue.Await(second).ok());
  CHECK(rig.queue.Done(first));
  CHECK(rig.queue.Done(second));
  CHECK_FALSE(rig.queue.Done(other));
}

TEST_CASE("a stream waits for the event that was named, not for a later use of its place") {
  Rig rig;
  const StreamEvent early = rig.queue.Record(Stream::kUp);
  rig.queue.Wait(Stream::kCompute, early);
  CHECK(rig.queue.Await(early).ok());
  // The event's place is taken by another one.
  const StreamEvent late = rig.queue.Record(Stream::kCompute);
  CHECK(rig.script.made == 1);
  rig.queue.Wait(Stream::kDown, early);
  rig.queue.Wait(Stream::kDown, late);
  // The stream does not wait for events that are done, for its own events, or for default ones.
  rig.queue.Wait(Stream::kCompute, late);
  rig.queue.Wait(Stream::kCompute, {});
  CHECK(rig.script.waits == std::vector<std::string>{"0 for 1/1", "2 for 0/1"});
}

TEST_CASE("a long run makes no more events than are pending at once") {
  Rig rig;
  for (int step = 0; step < 1000; ++step) {
    rig.queue.Record(Stream::kUp);
    const StreamEvent event = rig.queue.Record(Stream::kDown);
    // No stream asks for the events of kUp.
    rig.script.done[Stream::kUp] = rig.script.recorded[Stream::kUp];
    CHECK(rig.queue.Await(event).ok());
  }
  CHECK(rig.script.made < 70);
}

TEST_CASE("an error that surfaces late names what may have failed, and stays") {
  Rig rig;
  rig.queue.CopyToDevice(Stream::kUp, std::span<const float>(rig.memory), rig.memory);
  const StreamEvent up = rig.queue.Record(Stream::kUp);
  REQUIRE(rig.queue.Await(up).ok());
  for (const char* name : {"GeluForward", "SumRows", "GeluForward"}) {
    REQUIRE(rig.queue.BeginKernel(name));
    rig.queue.EndKernel();
  }
  const StreamEvent kernels = rig.queue.Record(Stream::kCompute);
  rig.script.failed = 700;
  CHECK_FALSE(rig.queue.Done(kernels));
  const std::string text(rig.queue.status().message());
  CHECK(
      Says(rig.queue.status(), {"cuda:7, a script", "one of GeluForward, SumRows:", "error 700"}));
  CHECK_FALSE(Says(rig.queue.status(), {"CopyToDevice"}));
  rig.script.failed = 0;
  CHECK_FALSE(rig.queue.Done(kernels));
  CHECK(rig.queue.Await(kernels).code() == absl::StatusCode::kInternal);
  const int queued = rig.script.queued;
  CHECK_FALSE(rig.queue.BeginKernel("Fill"));
  rig.queue.CopyToHost(Stream::kDown, rig.memory, rig.memory);
  rig.queue.Record(Stream::kCompute);
  CHECK(rig.script.queued == queued);
  CHECK(std::string(rig.queue.status().message()) == text);
}

TEST_CASE("what was queued behind a done event is still a suspect, what was before it is not") {
  Rig rig;
  std::vector<StreamEvent> events;
  for (const char* name : {"GeluForward", "SumRows", "Fill"}) {
    REQUIRE(rig.queue.BeginKernel(name));
    rig.queue.EndKernel();
    events.push_back(rig.queue.Record(Stream::kCompute));
  }
  rig.script.done[Stream::kCompute] = 1;
  CHECK(rig.queue.Done(events[0]));
  rig.script.failed = 700;
  CHECK(Says(rig.queue.Await(events[2]), {"one of SumRows, Fill:"}));
}

TEST_CASE("a single suspect is named alone, and so is what blocks") {
  Rig alone;
  alone.queue.Multiply({});
  const StreamEvent event = alone.queue.Record(Stream::kCompute);
  alone.script.failed = 719;
  CHECK(Says(alone.queue.Await(event), {"running Gemm:"}));

  Rig blocking(true);
  blocking.queue.Multiply({});
  REQUIRE(blocking.queue.BeginKernel("SumRows"));
  blocking.script.failed = 719;
  blocking.queue.EndKernel();
  CHECK(Says(blocking.queue.status(), {"running SumRows:"}));
  CHECK_FALSE(Says(blocking.queue.status(), {"BLOCKING"}));
}

TEST_CASE("work that cannot be queued is named") {
  Rig rig;
  rig.script.broken = 1;
  SECTION("a copy") {
    rig.queue.CopyToHost(Stream::kDown, rig.memory, rig.memory);
    CHECK(Says(rig.queue.status(), {"queueing CopyToHost:"}));
  }
  SECTION("a kernel") {
    CHECK_FALSE(rig.queue.BeginKernel("FillRows"));
    CHECK(Says(rig.queue.status(), {"queueing FillRows:"}));
  }
  SECTION("an event") {
    rig.queue.Record(Stream::kUp);
    CHECK(Says(rig.queue.status(), {"an event"}));
  }
}

// ---- the backend's own errors, on the host

TEST_CASE("a device without room says how much there is, and what to do") {
  HostRuntimeCounts counts;
  CHECK(CudaBackend::Make(MakeHostRuntime({.memory_bytes = 1000}, counts), false).status().code() ==
        absl::StatusCode::kResourceExhausted);
  auto backend = CudaBackend::Make(MakeHostRuntime({.memory_bytes = 8 << 20}, counts), false);
  REQUIRE(backend.ok());
  const absl::Status status = (*backend)->Allocate(4 << 20).status();
  CHECK(status.code() == absl::StatusCode::kResourceExhausted);
  CHECK(Says(status, {"16777216 bytes", "8388608", "data.batch_size"}));
  // The device itself has not failed.
  CHECK((*backend)->status().ok());
  CHECK((*backend)->Allocate(1000).ok());
}

TEST_CASE("a kernel or product that fails is named, and nothing runs after it") {
  HostRuntimeCounts counts;
  float x[4] = {1, 2, 3, 4}, y[4] = {};
  SECTION("a kernel") {
    auto backend = CudaBackend::Make(MakeHostRuntime({.fail_launch = 1}, counts), false);
    REQUIRE(backend.ok());
    (*backend)->ActivationForward(Activation::kRelu, 4, x, y);
    (*backend)->ActivationForward(Activation::kTanh, 4, x, y);
    CHECK(Says((*backend)->status(), {"queueing TanhForward"}));
    (*backend)->Fill(4, 7, y);
    CHECK(y[0] != 7);
  }
  SECTION("a product") {
    auto backend = CudaBackend::Make(MakeHostRuntime({.fail_product = 0}, counts), false);
    REQUIRE(backend.ok());
    (*backend)->Gemm({2, 2, 2}, Op::kAsIs, x, Op::kAsIs, x, false, y);
    CHECK(Says((*backend)->status(), {"queueing Gemm"}));
  }
}

TEST_CASE("everything that a backend took is given back, and pins end before the memory") {
  HostRuntimeCounts counts;
  const bool refuse = GENERATE(false, true);
  {
    auto backend = CudaBackend::Make(MakeHostRuntime({.refuse_pin = refuse}, counts), false);
    REQUIRE(backend.ok());
    std::vector<float> large(5000), small(10);
    const PinnedMemory pinned = (*backend)->Pin(large);
    CHECK((pinned != nullptr) == !refuse);
    CHECK(counts.pinned.size() == (refuse ? 0 : 1));
    CHECK((*backend)->Pin(small) == nullptr);
    CHECK((*backend)->status().ok());
    const auto memory = (*backend)->Allocate(0);
    CHECK(memory.ok());
    (*backend)->Record(Stream::kUp);
    CHECK(counts.allocations == 2);
  }
  CHECK(counts.allocations == 0);
  CHECK(counts.events == 0);
  CHECK(counts.pinned.empty());
}

}  // namespace
}  // namespace leeway::cuda::queue
