#include "client/transport/stream_transport.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/rpc/channel.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/queue_event.h"
#include "leeway/v1/parameter_server.grpc.pb.h"

namespace leeway {
namespace {

// A stream gets more unanswered bytes than this only if the server's other streams have as many. So
// small messages are sent on one stream and share frames.
constexpr uint64_t kLaneBytes = 256 << 10;
// The arena has address space for this number of vectors (contributions and local weights), and
// some bytes to spare. Unused address space takes no memory.
constexpr uint64_t kArenaVectors = 8;
constexpr uint64_t kArenaSpareBytes = 64 << 20;
constexpr Duration kLookForLateEvery = std::chrono::seconds(1);
// Cancelled operations usually end at once. If they take longer than this, the log reports it.
constexpr Duration kClosingSeemsLong = std::chrono::seconds(10);

gpr_timespec In(Duration delay) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(delay).count();
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_micros(us, GPR_TIMESPAN));
}

// Returns null if the operating system supplies no shared memory, and logs the reason. Payloads
// then travel in frames.
std::shared_ptr<SharedArena> MakeArena(const TransportOptions& options) {
  auto arena =
      SharedArena::Create(kArenaVectors * options.vector_floats * sizeof(float) + kArenaSpareBytes);
  if (arena.ok()) return *arena;
  spdlog::warn("no shared memory: {}", std::string(arena.status().message()));
  return nullptr;
}

bool SharesMemory(v1::TransportType type) {
  return type == v1::TRANSPORT_TYPE_AUTO || type == v1::TRANSPORT_TYPE_SHM;
}

}  // namespace

class StreamTransport::Once : public QueueEvent {
 public:
  explicit Once(StreamTransport* transport) : transport_(transport) {}
  virtual void BreakOff() = 0;
  // Returns the server to which the call goes, or null for a call that goes to no server.
  virtual const Server* asked() const { return nullptr; }

 private:
  void Run(bool) final {
    Happen();
    transport_->End(this);
  }
  virtual void Happen() = 0;

  StreamTransport* const transport_;
};

class StreamTransport::AttachOnce : public Once {
 public:
  using Once::Once;
  void Happen() override { call->OnDone(ResultOf(status, context), reply); }
  // This function may run before the call has started. The call then fails at once.
  void BreakOff() override { context.TryCancel(); }
  const Server* asked() const override { return server.get(); }

  std::shared_ptr<Server> server;
  grpc::ClientContext context;
  grpc::Status status;
  TransportReply reply;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::AttachReply>> reader;
  std::shared_ptr<TransportCall> call;
};

class StreamTransport::TimerOnce : public Once {
 public:
  using Once::Once;
  void Happen() override { callback(); }
  void BreakOff() override { alarm.Cancel(); }

  grpc::Alarm alarm;
  std::function<void()> callback;
};

StreamTransport::StreamTransport(const TransportOptions& options) : options_(options) {
  const bool any_local = std::any_of(
      options.servers.begin(), options.servers.end(), [&](const ServerEndpoint& endpoint) {
        return !endpoint.local_address.empty() && endpoint.host == host_;
      });
  if (any_local && !host_.empty() && SharesMemory(options.type)) arena_ = MakeArena(options);
  {
    MutexLock lock(servers_mutex_);
    for (uint32_t i = 0; i < options.servers.size(); ++i) {
      servers_.push_back(MakeServer(options.servers[i], options, i));
    }
  }
  LookForLate();
  driver_.Start();
}

StreamTransport::~StreamTransport() { Close(); }

std::shared_ptr<StreamTransport::Server> StreamTransport::MakeServer(
    const ServerEndpoint& endpoint, const TransportOptions& options, uint32_t index) {
  auto made = std::make_shared<Server>();
  Server& server = *made;
  const bool here = !endpoint.local_address.empty() && !host_.empty() && endpoint.host == host_;
  server.local = here && options.type != v1::TRANSPORT_TYPE_TCP;
  const bool wants_local =
      options.type == v1::TRANSPORT_TYPE_UNIX || options.type == v1::TRANSPORT_TYPE_SHM;
  if (wants_local && !here) {
    server.status = absl::InvalidArgumentError(absl::StrCat(
        "transport.type: server ", index, " (", endpoint.address,
        ") does not run on this worker's host as this worker's user; use auto or tcp"));
  }
  const std::string& address = server.local ? endpoint.local_address : endpoint.address;
  for (uint32_t i = 0; i < std::max(options.channels, 1u); ++i) {
    StreamLane::Options lane;
    lane.channel = MakeChannel(address, ProcessSecurity(), Callee::kHolder);
    lane.driver = &driver_;
    lane.server = absl::StrCat("server ", index, " (", endpoint.address, ")");
    if (server.local) lane.arena = arena_;
    lane.local = server.local;
    lane.on_stream_end = [this] {
      MutexLock lock(mutex_);
      if (Idle()) idle_.NotifyAll();
    };
    if (i == 0) server.channel = lane.channel;
    server.lanes.push_back(std::make_unique<StreamLane>(std::move(lane)));
  }
  return made;
}

StreamLane& StreamTransport::LaneFor(Server& server, uint64_t bytes) {
  StreamLane* best = nullptr;
  uint64_t least = 0;
  for (const auto& lane : server.lanes) {
    const uint64_t load = lane->unanswered_bytes();
    if (load + bytes <= kLaneBytes) return *lane;
    if (best == nullptr || load < least) {
      best = lane.get();
      least = load;
    }
  }
  return *best;
}

std::shared_ptr<StreamTransport::Server> StreamTransport::At(uint32_t server) const {
  MutexLock lock(servers_mutex_);
  return servers_[server];
}

bool StreamTransport::HasLink(uint32_t server) const { return !At(server)->local; }

void StreamTransport::MoveServer(uint32_t server, const ServerEndpoint& endpoint) {
  std::shared_ptr<Server> moved = MakeServer(endpoint, options_, server);
  {
    MutexLock lock(servers_mutex_);
    moved.swap(servers_[server]);
    // Its streams may still be ending.
    retired_.push_back(moved);
  }
  const absl::Status why =
      absl::UnavailableError(absl::StrCat("server ", server, " has moved to ", endpoint.address));
  for (const auto& lane : moved->lanes) lane->Close(why);
  MutexLock lock(mutex_);
  for (Once* once : active_) {
    if (once->asked() == moved.get()) once->BreakOff();
  }
}

void StreamTransport::ForgetRetired() {
  // Runs the work that lanes have postponed.
  driver_.RunAtRest();
  // The servers to forget. They are destroyed after the lock is released.
  std::vector<std::shared_ptr<Server>> over;
  MutexLock lock(servers_mutex_);
  const auto first_over = std::stable_partition(
      retired_.begin(), retired_.end(), [](const std::shared_ptr<Server>& server) {
        return std::any_of(server->lanes.begin(), server->lanes.end(),
                           [](const auto& lane) { return !lane->over(); });
      });
  over.assign(first_over, retired_.end());
  retired_.erase(first_over, retired_.end());
}

std::vector<std::shared_ptr<StreamTransport::Server>> StreamTransport::All() const {
  MutexLock lock(servers_mutex_);
  std::vector<std::shared_ptr<Server>> all = servers_;
  all.insert(all.end(), retired_.begin(), retired_.end());
  return all;
}

void StreamTransport::Call(uint32_t server, const TransportRequest& request, Duration timeout,
                           std::shared_ptr<TransportCall> call) {
  if (request.kind == TransportRequest::Kind::kAttach) {
    return CallAttach(server, request, timeout, std::move(call));
  }
  const std::shared_ptr<Server> target = At(server);
  if (!target->status.ok()) return Refuse(target->status, std::move(call));
  StreamLane& lane = LaneFor(*target, request.bytes());
  const absl::Status begun = lane.Call(request, Now() + timeout, call);
  if (!begun.ok()) Refuse(begun, std::move(call));
}

void StreamTransport::Refuse(const absl::Status& status, std::shared_ptr<TransportCall> call) {
  CallAfter(Duration::zero(), [status, call = std::move(call)] { call->OnDone(status, {}); });
}

void StreamTransport::CallAttach(uint32_t server, const TransportRequest& request, Duration timeout,
                                 std::shared_ptr<TransportCall> call) {
  v1::AttachRequest message;
  message.set_job(request.header.job());
  message.set_rank(request.header.rank());
  message.set_incarnation(request.header.incarnation());
  message.set_generation(request.header.generation());
  message.set_shard(request.header.block());
  auto* once = new AttachOnce(this);
  once->context.set_deadline(In(timeout));
  absl::Status reachable;
  {
    // Because of the lock, either this call finds the new server, or the thread that moves the
    // server finds this call.
    MutexLock lock(mutex_);
    once->server = At(server);
    reachable = once->server->status;
    if (reachable.ok()) active_.insert(once);
    if (cancelled_) once->BreakOff();
  }
  if (!reachable.ok()) {
    delete once;
    return Refuse(reachable, std::move(call));
  }
  once->call = std::move(call);
  v1::ParameterServer::Stub stub(once->server->channel);
  once->reader = stub.PrepareAsyncAttach(&once->context, message, driver_.queue());
  // After Finish() the object may be gone.
  auto* const reader = once->reader.get();
  reader->StartCall();
  reader->Finish(&once->reply.attach, &once->status, once->Tag());
}

void StreamTransport::CallAfter(Duration delay, std::function<void()> callback) {
  auto* once = new TimerOnce(this);
  once->callback = std::move(callback);
  MutexLock lock(mutex_);
  active_.insert(once);
  once->alarm.Set(driver_.queue(), In(cancelled_ ? Duration::zero() : delay), once->Tag());
}

void StreamTransport::End(Once* once) {
  {
    MutexLock lock(mutex_);
    active_.erase(once);
    if (Idle()) idle_.NotifyAll();
  }
  delete once;
}

void StreamTransport::LookForLate() {
  const Time now = Now();
  for (const auto& server : All()) {
    for (const auto& lane : server->lanes) lane->GiveUpLate(now);
  }
  ForgetRetired();
  {
    MutexLock lock(mutex_);
    if (cancelled_) return;
  }
  CallAfter(kLookForLateEvery, [this] { LookForLate(); });
}

void StreamTransport::Cancel() {
  MutexLock lock(mutex_);
  cancelled_ = true;
  for (Once* once : active_) once->BreakOff();
  for (const auto& server : All()) {
    for (const auto& lane : server->lanes) lane->Close(absl::CancelledError("cancelled"));
  }
}

bool StreamTransport::Idle() const {
  if (!active_.empty()) return false;
  const auto all = All();
  return std::all_of(all.begin(), all.end(), [](const auto& server) {
    return std::none_of(server->lanes.begin(), server->lanes.end(),
                        [](const auto& lane) { return lane->busy(); });
  });
}

bool StreamTransport::WaitForIdle(Time deadline) {
  MutexLock lock(mutex_);
  while (!Idle()) {
    if (!idle_.WaitUntil(mutex_, deadline)) return Idle();
  }
  return true;
}

std::string StreamTransport::UnderWay() {
  std::vector<std::string> streams;
  for (const auto& server : All()) {
    for (const auto& lane : server->lanes) {
      if (lane->busy()) streams.push_back(lane->server());
    }
  }
  MutexLock lock(mutex_);
  return absl::StrCat(active_.size(), " calls, and streams to [", absl::StrJoin(streams, ", "),
                      "]");
}

void StreamTransport::Close() {
  Cancel();
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    closed_ = true;
  }
  // Waits without a limit, because operations in progress refer to this object. The log reports the
  // wait.
  while (!WaitForIdle(Now() + kClosingSeemsLong)) {
    spdlog::warn("closing the connections: cancelled, but still in progress: {}", UnderWay());
  }
  driver_.Stop();
}

void StreamTransport::Drive(const std::function<bool()>& done, Time deadline) {
  driver_.Drive(done, deadline);
}

std::unique_ptr<Transport> MakeStreamTransport(const TransportOptions& options) {
  return std::make_unique<StreamTransport>(options);
}

}  // namespace leeway
