// The client of the parameter servers: a library of its own. It knows a flat float32 vector, the
// blocks it is cut into and the clock rule of the exchange; it knows nothing of models or training.
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
// A walk through one block of a PushPull, values as they are, by the functions that hand it on. Ten
// calls to the frame, on the caller's thread:
//    1. ParameterClient::PushPull
//    2. ParameterClient::Start      checks ranges and sizes; one operation, a call for each block
//    3. CallQueue::Start            queues the calls by server and priority
//    4. CallQueue::Pump             takes what the server's window has room for
//    5. BlocksOperation::Request    the header, and where the block's values lie
//    6. StreamTransport::Call       chooses the connection
//    7. StreamLane::Call            remembers who waits for the answer
//    8. StreamLane::Flush           gathers requests into a frame, and writes it
//    9. FrameWriter::Append         refers to the values
//   10. FrameWriter::Finish         puts the heads before them
// And back, on the thread that waits, else the client's own (client/queue_driver.h):
//    1. StreamLane::OnRead          a frame has come
//    2. DecodeReplyFrame            protobuf reads the heads, payloads stay in their slices
//    3. StreamLane::TakeReply       finds who waits for the answer
//    4. FramePayload::Take          its values
//    5. CallQueue::OnDone           decides whether to send again
//    6. BlocksOperation::TakeReply  checks the block
//    7. PayloadCodecs::Take         checks the size
//    8. FloatPayload::CopyTo        the one copy: into the caller's weights
//    9. CallQueue::Finish           wakes the caller after the last block, and pumps
// In shared memory a frame says where values lie, in place of 9 and of 4.
//
// docs/protocol.md is the contract with the servers, docs/consistency.md says what a reader sees.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/block_range.h"
#include "client/call_queue.h"
#include "client/payload_codecs.h"
#include "client/transport.h"
#include "common/blocks.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/codec/plan.h"
#include "common/mutex.h"
#include "common/update/rule.h"

namespace leeway {

// How many blocks of so many bytes may be in flight to a server. With 16 a round trip of 1 ms is
// covered at 10 GB/s by blocks of 1 MiB, and more would only hold more of the server's memory. The
// smaller blocks are the more of each of them is waking who waits, which many share: so up to 64,
// while they are no more than 4 MiB (docs/lab/performance.md).
uint32_t WindowFor(uint64_t block_bytes);

// Who speaks to whom about what; CoordinatorSession::Register() gives all of it.
struct ParameterClientOptions {
  // By shard: block i is of shard i mod their number.
  std::vector<ServerEndpoint> servers;
  // How to reach them.
  v1::TransportType transport = v1::TRANSPORT_TYPE_AUTO;
  // Connections to each.
  uint32_t channels = 2;
  uint64_t job = 0;
  uint32_t rank = 0;
  // Which life of the rank, and which of the job.
  uint64_t incarnation = 0;
  uint64_t generation = 0;
  // Elements of the flat vector, and of a block (the last one is shorter).
  uint64_t total = 0;
  uint64_t block_elements = 0;
  BlockCuts cuts = {};
  // From the first attempt of a call until it is given up, unless `goes_on`.
  double exchange_seconds = 600;
  // Blocks in flight per server; 0: WindowFor() their size, or more where a link is long.
  uint32_t window = 0;
  // Of the calls' queue (call_queue.h).
  std::function<void()> on_unreached = {};
  std::function<bool()> goes_on = {};
  // How payloads are compressed, as the servers know it; null: not at all.
  std::shared_ptr<const CodecPlan> codecs = nullptr;
  // Nobody but this client writes to the vectors that its calls receive into, while it lives: a
  // version that lies there already is not sent again. Not for elastic exchanges, whose answers
  // are older than the version that they name.
  bool weights_stay = false;
};

struct BlockExchange;
class BlocksOperation;

// Thread-safe. Every call returns at once with a ticket; any number may be open. Blocks go out as
// the windows have room, the lowest first, whichever call they belong to.
//
// Vectors are the whole flat vector, `total` floats, of which a call touches the given blocks only.
// They are neither copied nor locked, and may not overlap. A contribution stays unchanged, and
// weights stay unread, until Wait() has returned OK; after ALREADY_EXISTS, ABORTED or
// FAILED_PRECONDITION, for which the servers drop it, until Settle() has returned. After other
// errors a server may hold it on, on the same host as a mere reference to this memory: then it
// stays unchanged for the rest of this life of the rank, and where it is until the client is gone.
//
// Where contributions are compressed, calls that send the same block are begun one after the other,
// clock by clock. Where the servers answer changes (top_k, sign), weights that a call receives into
// are, in the vector that the call before received into, as that one left them; a vector of other
// memory is filled anew.
//
// Repeating is safe: a request is known by (rank, clock, block), and one that was not answered is
// sent again until exchange_seconds are over. Errors, each naming method, block, clock and who is
// to blame:
//   DEADLINE_EXCEEDED    given up; the text says who was missing
//   ABORTED              a newer life of this rank exists: stop
//   FAILED_PRECONDITION  this rank stands elsewhere than it thinks, or the job has gone back to a
//                        checkpoint: register anew
//   ALREADY_EXISTS       the clock was completed without this rank, or has been overtaken: what was
//                        handed in for it is dropped; Attach() and go on from there
//   INVALID_ARGUMENT     the call or the server's answer is wrong and stays wrong
//   CANCELLED            after Cancel()
class ParameterClient {
 public:
  // What a finished call has seen.
  struct Result {
    // Clocks by which the slowest live worker is behind; the largest over the blocks.
    uint64_t staleness = 0;
    // Updates applied to the block that has least of them.
    uint64_t version = 0;
  };
  // Where the rank goes on.
  struct Attachment {
    // The first clock that some block still wants from it: pull it and go on from there.
    uint64_t clock = 0;
    // Some block waits for its first version.
    bool needs_initialize = false;
    // The clock after the last of this rank's contributions that count, where not all do.
    uint64_t counted = 0;
  };
  // A call under way. Copyable; empty by default.
  class Ticket;

  // Connects lazily. INVALID_ARGUMENT for options that make no layout.
  static absl::StatusOr<std::unique_ptr<ParameterClient>> Open(
      const ParameterClientOptions& options, const TransportFactory& transport = nullptr);
  // Cancels what is open.
  ~ParameterClient();

  const BlockLayout& layout() const { return layout_; }
  BlockRange AllBlocks() const { return {0, layout_.blocks()}; }

  // A zeroed vector of `total` floats in memory that the transport sends from without copying.
  FloatBuffer MakeVector();

  // Asks all servers; waits. FAILED_PRECONDITION if no server holds a block.
  absl::StatusOr<Attachment> Attach();
  // Gives every block that has none its first version; waits. Harmless where one exists.
  absl::Status Initialize(std::span<const float> weights);

  // Hands in the contribution of `clock`, made of `examples` training examples (its weight; 0 is
  // legal). Done when it is applied: in sync mode when all workers have handed in that clock.
  Ticket Push(uint64_t clock, uint64_t examples, std::span<const float> contribution,
              BlockRange blocks);
  // Reads the weights as a worker starting `clock` may see them, once it may.
  Ticket Pull(uint64_t clock, std::span<float> weights, BlockRange blocks);
  // Reads whatever is current, without waiting for anybody.
  Ticket PullLatest(std::span<float> weights, BlockRange blocks);
  // Push of `clock`, then Pull of `clock + 1`, in one round trip. With an elastic exchange
  // `weights` become the centre as it was before the contribution. `rates`: of the contribution;
  // not with an elastic exchange.
  Ticket PushPull(uint64_t clock, uint64_t examples, std::span<const float> contribution,
                  std::span<float> weights, BlockRange blocks, ContributionRates rates = nullptr);
  // The same, of all blocks.
  Ticket Push(uint64_t clock, uint64_t examples, std::span<const float> contribution);
  Ticket Pull(uint64_t clock, std::span<float> weights);
  Ticket PullLatest(std::span<float> weights);
  // Reads the moving average of the weights (update.average), without waiting for anybody.
  Ticket PullAverage(std::span<float> weights);
  Ticket PushPull(uint64_t clock, uint64_t examples, std::span<const float> contribution,
                  std::span<float> weights);
  // PushPull of a contribution that is part of the one that another worker of this host sends
  // (workers.per_host: combine, client/host_group.h): it has no values here, and its residual stays
  // as it is. Done when the other one is applied.
  Ticket PushPullCombined(uint64_t clock, std::span<float> weights, BlockRange blocks);

  // The call's result, or its first error as soon as there is one. DEADLINE_EXCEEDED after
  // `deadline`, which ends the waiting only: the ticket may be waited for again.
  absl::StatusOr<Result> Wait(const Ticket& ticket, Time deadline = Time::max());
  // Wait() would not wait: DEADLINE_EXCEEDED is the call's own.
  bool IsOver(const Ticket& ticket) const;

  // After an error: returns when nothing of the call is under way any more.
  void Settle(const Ticket& ticket);

  // What the encodings of contributions have lost so far and the next ones make good: a part of the
  // worker's state. Not while a call that sends is being begun.
  bool keeps_residual() const { return codecs_.keeps_residual(); }
  // How payloads are encoded; null: not at all.
  const CodecPlan* codec_plan() const { return codecs_.plan(); }
  // As it was before the contribution of `clock`, which is the latest or a later one. The whole
  // vector; only if one is kept.
  absl::Status ReadResidual(uint64_t clock, std::span<float> residual) const;
  // The contribution of `clock`, which is the latest, was dropped, and nothing of it is under way:
  // what it took of the residual comes back. Only if one is kept.
  void UndoResidual(uint64_t clock);
  // Before the first contribution.
  absl::Status SetResidual(std::span<const float> residual);
  // From now on `encoder` encodes contributions and keeps the residual. Call it before the first
  // contribution, and only if a residual is kept. The encoder outlives the client.
  void EncodeContributionsBy(ContributionEncoder& encoder) { codecs_.EncodeBy(encoder); }

  // So far.
  Traffic traffic() const { return codecs_.traffic(); }

  // What the earliest open call waits for, in its server's words ("block 3 clock 17: waiting for
  // worker 2"); empty if nothing was put off.
  std::string Waiting() const { return queue_.Waiting(); }

  // The servers are elsewhere: open calls are sent on to where they are. As many as before.
  void MoveServers(const std::vector<ServerEndpoint>& servers);

  // Breaks off every call, for good: what is open or begun later ends with CANCELLED.
  void Cancel() { queue_.Cancel(); }

 private:
  ParameterClient(const ParameterClientOptions& options, BlockLayout layout,
                  std::unique_ptr<Transport> transport);
  Ticket Start(const BlockExchange& exchange);

  // Constant after construction.
  const ParameterClientOptions options_;
  const BlockLayout layout_;
  // Have their own synchronisation. The queue's calls use the codecs.
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
  // Why it could not even start.
  absl::Status refused_;
  CallQueue::Ticket calls_;
  std::shared_ptr<BlocksOperation> operation_;
};

}  // namespace leeway
