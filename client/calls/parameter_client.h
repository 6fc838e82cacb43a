// The client of the parameter servers, as a library of its own. It knows a flat float32 vector, the
// blocks of that vector, and the clock rule of the exchange. It knows nothing of models or
// training.
//
//   auto client = ParameterClient::Open(options);
//   auto attachment = (*client)->Attach();
//   (*client)->Wait((*client)->Pull(attachment->clock, weights));
//   for (uint64_t clock = attachment->clock; clock < clocks; ++clock) {
//     ...compute a contribution from the weights...
//     auto result = (*client)->Wait((*client)->PushPull(clock, examples, contribution, weights));
//     if (!result.ok()) return result.status();
//   }
//
// This is the path of one block of a PushPull without encoding, function by function. Ten calls
// lead to the frame, on the caller's thread:
//    1. ParameterClient::PushPull
//    2. ParameterClient::Start      checks ranges and sizes; one operation, a call for each block
//    3. CallQueue::Start            queues the calls by server and priority
//    4. CallQueue::Pump             takes what the server's window has room for
//    5. BlocksOperation::Request    the header, and where the block's values are
//    6. StreamTransport::Call       chooses the connection
//    7. StreamLane::Call            notes which call waits for the answer
//    8. StreamLane::Flush           gathers requests into a frame, and writes it
//    9. FrameWriter::Append         refers to the values
//   10. FrameWriter::Finish         puts the heads before them
// The way back is on the waiting thread, or on the thread of client/transport/queue_driver.h:
//    1. StreamLane::OnRead          a frame has come
//    2. DecodeReplyFrame            protobuf reads the heads, payloads stay in their slices
//    3. StreamLane::TakeReply       finds the call that waits for the answer
//    4. FramePayload::Take          its values
//    5. CallQueue::OnDone           decides whether to send again
//    6. BlocksOperation::TakeReply  checks the block
//    7. PayloadCodecs::Take         checks the size
//    8. FloatPayload::CopyTo        the one copy: into the caller's weights
//    9. CallQueue::Finish           wakes the caller after the last block, and pumps
// With shared memory a frame says where values are, instead of step 9 above and step 4 below.
//
// docs/protocol.md is the contract with the servers. docs/consistency.md says what a reader sees.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/calls/block_range.h"
#include "client/calls/call_queue.h"
#include "client/calls/payload_codecs.h"
#include "client/transport/transport.h"
#include "common/blocks.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/codec/plan.h"
#include "common/mutex.h"
#include "common/update/rule.h"

namespace leeway {

// How many blocks of `block_bytes` may be in flight to a server. Eight blocks of 1 MiB cover a
// round trip of 0.8 ms at 10 GB/s. More would only hold more of the server's memory. For small
// blocks most of the cost is waking the waiting thread, and blocks in flight together share it. So
// the window has at least 8 blocks, and up to 64 while together they have at most 4 MiB
// (docs/lab/performance.md).
uint32_t WindowFor(uint64_t block_bytes);

// The identities of the job, the worker and its servers. CoordinatorSession::Register() gives
// all of them.
struct ParameterClientOptions {
  // By shard: block i is in shard i mod the number of shards.
  std::vector<ServerEndpoint> servers;
  // How to reach the servers.
  v1::TransportType transport = v1::TRANSPORT_TYPE_AUTO;
  // Connections to each server.
  uint32_t channels = 2;
  uint64_t job = 0;
  uint32_t rank = 0;
  // Which life of the rank this is, and which life of the job.
  uint64_t incarnation = 0;
  uint64_t generation = 0;
  // Elements of the flat vector, and of a block (the last block is shorter).
  uint64_t total = 0;
  uint64_t block_elements = 0;
  // From the first attempt of a call until the client gives up, unless `goes_on`.
  double exchange_seconds = 600;
  // Blocks in flight to each server. 0: WindowFor() of their size, or more if a link is long.
  uint32_t window = 0;
  // Passed on to the queue of calls (call_queue.h).
  std::function<void()> on_unreached = {};
  std::function<bool()> goes_on = {};
  // How payloads are compressed, as the servers know it. Null: they are not compressed.
  std::shared_ptr<const CodecPlan> codecs = nullptr;
  // True: while the client lives, nobody else writes to the vectors that its calls receive into. A
  // version that is already there is then not sent again. Do not use it with elastic exchanges:
  // their answers are older than the version that they name.
  bool weights_stay = false;
};

struct BlockExchange;
class BlocksOperation;

// Thread-safe. Every call returns at once with a ticket, and any number of calls may be open.
// Blocks go out as the windows have room, the lowest first, whichever call they belong to.
//
// Vectors are the whole flat vector, `total` floats. A call touches the given blocks only. The
// client neither copies nor locks vectors, and they may not overlap. The caller must not change a
// contribution, and must not read weights, until Wait() has returned OK. After ALREADY_EXISTS,
// ABORTED or FAILED_PRECONDITION the servers drop the contribution: wait until Settle() has
// returned. After other errors a server may still hold the contribution, on the same host as a mere
// reference to this memory. Then it must stay unchanged for the rest of this life of the rank, and
// in place until the client is destroyed.
//
// With compressed contributions, calls that send the same block are begun one after the other,
// clock by clock. With codecs for which the servers answer changes (top_k, sign), a call must
// receive into the vector of the previous call, as that call left it. A vector in other memory is
// filled anew.
//
// Repeating is safe: a request is known by (rank, clock, block). A request without an answer is
// sent again until exchange_seconds are over. Each error names the method, the block, the clock and
// the process that is to blame:
//   DEADLINE_EXCEEDED    the client gave up; the text says who was missing
//   ABORTED              a newer life of this rank exists: stop
//   FAILED_PRECONDITION  this rank is at another clock than it thinks, or the job has gone back to
//                        a checkpoint: register again
//   ALREADY_EXISTS       the clock was completed without this rank, or was overtaken: its
//                        contribution is dropped; Attach() and go on from there
//   INVALID_ARGUMENT     the call or the server's answer is wrong and stays wrong
//   CANCELLED            after Cancel()
class ParameterClient {
 public:
  // What a finished call has seen.
  struct Result {
    // How many clocks the slowest live worker is behind. The largest value over the blocks.
    uint64_t staleness = 0;
    // Updates applied to the block that has had the fewest.
    uint64_t version = 0;
  };
  // Where the rank goes on.
  struct Attachment {
    // The first clock that some block still wants from this rank: pull it and go on from there.
    uint64_t clock = 0;
    // Some block waits for its first version.
    bool needs_initialize = false;
    // The clock after the last contribution of this rank that counts, if not all of them count.
    uint64_t counted = 0;
  };
  // A call in progress. It can be copied, and is empty by default.
  class Ticket;

  // Connects lazily. INVALID_ARGUMENT for options that make no layout.
  static absl::StatusOr<std::unique_ptr<ParameterClient>> Open(
      const ParameterClientOptions& options, const TransportFactory& transport = nullptr);
  // Cancels all open calls.
  ~ParameterClient();

  const BlockLayout& layout() const { return layout_; }
  BlockRange AllBlocks() const { return {0, layout_.blocks()}; }

  // A zeroed vector of `total` floats, in memory from which the transport sends without copying.
  FloatBuffer MakeVector();

  // Asks all servers, and waits. FAILED_PRECONDITION if no server holds a block.
  absl::StatusOr<Attachment> Attach();
  // Gives its first version to every block that has none, and waits. Harmless for the other blocks.
  absl::Status Initialize(std::span<const float> weights);

  // Hands in the contribution of `clock`, made of `examples` training examples (its weight; 0 is
  // legal). The call is done when the contribution is applied. In sync mode that is when all
  // workers have handed in that clock.
  Ticket Push(uint64_t clock, uint64_t examples, std::span<const float> contribution,
              BlockRange blocks);
  // Reads the weights as a worker that starts `clock` may see them, as soon as it may.
  Ticket Pull(uint64_t clock, std::span<float> weights, BlockRange blocks);
  // Reads the current weights, without waiting for anybody.
  Ticket PullLatest(std::span<float> weights, BlockRange blocks);
  // Push of `clock`, then Pull of `clock + 1`, in one round trip. With an elastic exchange
  // `weights` become the centre as it was before the contribution. `rates` are those of the
  // contribution; do not give them with an elastic exchange.
  Ticket PushPull(uint64_t clock, uint64_t examples, std::span<const float> contribution,
                  std::span<float> weights, BlockRange blocks, ContributionRates rates = nullptr);
  // The same for all blocks.
  Ticket Push(uint64_t clock, uint64_t examples, std::span<const float> contribution);
  Ticket Pull(uint64_t clock, std::span<float> weights);
  Ticket PullLatest(std::span<float> weights);
  // Reads the moving average of the weights (update.average), without waiting for anybody.
  Ticket PullAverage(std::span<float> weights);
  Ticket PushPull(uint64_t clock, uint64_t examples, std::span<const float> contribution,
                  std::span<float> weights);
  // PushPull of a contribution that is part of the one that another worker of this host sends
  // (workers.per_host: combine, client/calls/host_group.h). It has no values here, and its residual stays
  // as it is. The call is done when the other contribution is applied.
  Ticket PushPullCombined(uint64_t clock, std::span<float> weights, BlockRange blocks);

  // Returns the call's result, or its first error as soon as there is one. DEADLINE_EXCEEDED after
  // `deadline` ends the waiting only: the caller may wait for the ticket again.
  absl::StatusOr<Result> Wait(const Ticket& ticket, Time deadline = Time::max());
  // True if Wait() would return at once. A DEADLINE_EXCEEDED is then the call's own.
  bool IsOver(const Ticket& ticket) const;

  // After an error: returns when nothing of the call is in progress any more.
  void Settle(const Ticket& ticket);

  // True if the client keeps a residual: what encoding has lost so far, and later contributions
  // make good. It is part of the worker's state. Do not call while a sending call is being begun.
  bool keeps_residual() const { return codecs_.keeps_residual(); }
  // How payloads are encoded. Null: they are not encoded.
  const CodecPlan* codec_plan() const { return codecs_.plan(); }
  // Reads the whole residual as it was before the contribution of `clock`, which is the latest
  // clock or a later one. Only if a residual is kept.
  absl::Status ReadResidual(uint64_t clock, std::span<float> residual) const;
  // The contribution of `clock`, the latest one, was dropped, and nothing of it is in progress:
  // gives back what it took of the residual. Only if a residual is kept.
  void UndoResidual(uint64_t clock);
  // Sets the residual, before the first contribution.
  absl::Status SetResidual(std::span<const float> residual);
  // From now on `encoder` encodes contributions and keeps the residual. Call it before the first
  // contribution, and only if a residual is kept. The encoder outlives the client.
  void EncodeContributionsBy(ContributionEncoder& encoder) { codecs_.EncodeBy(encoder); }

  // Bytes so far.
  Traffic traffic() const { return codecs_.traffic(); }

  // Says what the earliest open call waits for, in its server's words ("block 3 clock 17: waiting
  // for worker 2"). Empty if no call was postponed.
  std::string Waiting() const { return queue_.Waiting(); }

  // The servers have moved: open calls are sent to their new addresses. Their number stays the
  // same.
  void MoveServers(const std::vector<ServerEndpoint>& servers);

  // Breaks off every call for good: open and later calls end with CANCELLED.
  void Cancel() { queue_.Cancel(); }

 private:
  ParameterClient(const ParameterClientOptions& options, BlockLayout layout,
                  std::unique_ptr<Transport> transport);
  Ticket Start(const BlockExchange& exchange);

  // Constant after construction.
  const ParameterClientOptions options_;
  const BlockLayout layout_;
  // These have their own synchronisation. The queue's calls use the codecs.
  PayloadCodecs codecs_;
  CallQueue queue_;
  Mutex servers_mutex_;
  std::vector<ServerEndpoint> servers_ GUARDED_BY(servers_mutex_);
};

class ParameterClient::Ticket {
 public:
  Ticket() = default;

 private:
  friend class ParameterClient;
  // Why the call could not even start.
  absl::Status refused_;
  CallQueue::Ticket calls_;
  std::shared_ptr<BlocksOperation> operation_;
};

}  // namespace leeway
