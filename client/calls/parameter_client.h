// The client of the parameter servers, as a library of its own. It knows a flat float32 vector, the
// blocks of that vector, and the clock rule of the exchange. It knows nothing of models or of
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
// This is the path of one block of a PushPull without encoding, function by function. These ten
// functions build the frame and send it, on the caller's thread:
//    1. ParameterClient::PushPull
//    2. ParameterClient::Start      checks ranges and sizes; one operation, a call for each block
//    3. CallQueue::Start            queues the calls by server and priority
//    4. CallQueue::Pump             takes calls until the server's window is full
//    5. BlocksOperation::Request    makes the header, and refers to the block's values
//    6. StreamTransport::Call       chooses the connection
//    7. StreamLane::Call            notes which call waits for the answer
//    8. StreamLane::Flush           gathers requests into a frame, and writes it
//    9. FrameWriter::Append         refers to the values
//   10. FrameWriter::Finish         puts the heads before them
// These nine functions handle the answer, on the waiting thread or on the thread of
// client/transport/queue_driver.h:
//    1. StreamLane::OnRead          has received a frame
//    2. DecodeReplyFrame            parses the heads, and leaves payloads in their slices
//    3. StreamLane::TakeReply       finds the call that waits for the answer
//    4. FramePayload::Take          takes the block's values from the frame
//    5. CallQueue::OnDone           decides whether to send again
//    6. BlocksOperation::TakeReply  checks the block
//    7. PayloadCodecs::Take         checks the size
//    8. FloatPayload::CopyTo        makes the only copy, into the caller's weights
//    9. CallQueue::Finish           wakes the caller after the last block, and calls Pump
// With shared memory a frame says where the values are, instead of step 9 of the first list and
// step 4 of the second.
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

// Returns how many blocks of `block_bytes` may be in flight to a server. Eight blocks of 1 MiB
// cover a round trip of 0.8 ms at 10 GB/s, and more would only occupy more of the server's memory.
// For small blocks most of the cost is waking the waiting thread, and blocks that are in flight
// together share that cost. So the window has at least 8 blocks, and up to 64 blocks if they have
// at most 4 MiB together (docs/lab/performance.md).
uint32_t WindowFor(uint64_t block_bytes);

// Who the worker is, in which job, and where its servers are. The answer of
// CoordinatorSession::Register() contains all of this.
struct ParameterClientOptions {
  // The servers by shard. Block i is in shard i mod the number of shards.
  std::vector<ServerEndpoint> servers;
  // How to reach the servers.
  v1::TransportType transport = v1::TRANSPORT_TYPE_AUTO;
  // The number of connections to each server.
  uint32_t channels = 2;
  uint64_t job = 0;
  uint32_t rank = 0;
  // The numbers of the rank's current life (incarnation) and of the job's current life
  // (generation).
  uint64_t incarnation = 0;
  uint64_t generation = 0;
  // The number of elements of the flat vector, and of a block (the last block may be shorter).
  uint64_t total = 0;
  uint64_t block_elements = 0;
  // The elements with which a block begins anew (common/blocks.h).
  BlockCuts cuts = {};
  // How long the client repeats a call before it gives up. While `goes_on` returns true, it does
  // not give up.
  double exchange_seconds = 600;
  // The number of blocks in flight to each server. If 0, WindowFor() chooses it by the blocks'
  // size, and it may rise on a long link.
  uint32_t window = 0;
  // Passed on to the queue of calls (call_queue.h).
  std::function<void()> on_unreached = {};
  std::function<bool()> goes_on = {};
  // How payloads are compressed. The servers have the same plan. If null, payloads are not
  // compressed.
  std::shared_ptr<const CodecPlan> codecs = nullptr;
  // If true, the caller promises that only the client writes to the vectors into which its calls
  // receive. If a vector already has a version, a server then need not send that version again. Do
  // not set this with elastic exchanges, because their answers are older than the version that they
  // name.
  bool weights_stay = false;
};

struct BlockExchange;
class BlocksOperation;

// Thread-safe. Every call that returns a ticket returns at once, and any number of calls may be
// open. The client sends blocks as soon as the windows have room. The lowest block goes first,
// whichever call it belongs to.
//
// Each vector argument is the whole flat vector, `total` floats. A call reads and writes the given
// blocks only. The client neither copies nor locks vectors, and they may not overlap. The caller
// must not change a contribution, and must not read weights, until Wait() has returned OK. After
// ALREADY_EXISTS, ABORTED or FAILED_PRECONDITION the servers drop the contribution, and the caller
// may reuse its memory when Settle() has returned. After other errors a server may still hold the
// contribution, and a server on the same host holds only a reference to the caller's memory. Then
// the contribution must stay unchanged for the rest of this life of the rank, and its memory must
// stay valid until the client is destroyed.
//
// If contributions are compressed, the caller begins calls that send the same block one after the
// other, clock by clock. With some codecs (top_k, sign) the servers answer with changes instead of
// weights. A call must then receive into the vector of the previous call, as that call left it. If
// it receives into other memory, the servers send the whole weights.
//
// Repeating is safe, because the servers identify a request by (rank, clock, block). The client
// repeats a request until it is answered or exchange_seconds are over. Each error names the method,
// the block, the clock and the process that is to blame:
//   DEADLINE_EXCEEDED    the client gave up; the text says who was missing
//   ABORTED              a newer life of this rank exists: stop
//   FAILED_PRECONDITION  this rank is not at the clock that it names, or the job has gone back to
//                        a checkpoint: register again
//   ALREADY_EXISTS       the clock was completed without this rank, or is in the past: its
//                        contribution is dropped; Attach() and go on from there
//   INVALID_ARGUMENT     the call or the server's answer is wrong; repeating does not help
//   CANCELLED            after Cancel()
class ParameterClient {
 public:
  // What a finished call has learnt from the servers.
  struct Result {
    // The number of clocks by which the slowest live worker is behind this one. It is the largest
    // value of all blocks.
    uint64_t staleness = 0;
    // The smallest version of all blocks: the number of updates that were applied to a block.
    uint64_t version = 0;
  };
  // Where the rank goes on.
  struct Attachment {
    // The first clock of which some block still lacks this rank's contribution: pull the weights of
    // this clock and go on from there.
    uint64_t clock = 0;
    // True if some block waits for its first version.
    bool needs_initialize = false;
    // With committed sets, where some contributions do not count: the clock after this rank's last
    // contribution that counts.
    uint64_t counted = 0;
  };
  // Refers to a call in progress. It can be copied, and is empty by default.
  class Ticket;

  // Makes a client, which connects at its first call. Returns INVALID_ARGUMENT if the options
  // describe no valid layout of blocks.
  static absl::StatusOr<std::unique_ptr<ParameterClient>> Open(
      const ParameterClientOptions& options, const TransportFactory& transport = nullptr);
  // Cancels all open calls.
  ~ParameterClient();

  const BlockLayout& layout() const { return layout_; }

  // Returns a zeroed vector of `total` floats, in memory from which the transport sends without
  // copying.
  FloatBuffer MakeVector();

  // Asks all servers where the rank goes on, and waits for their answers. Returns
  // FAILED_PRECONDITION if no server holds a block.
  absl::StatusOr<Attachment> Attach();
  // Sends the first version of every block that has no version yet, and waits for the answers.
  // Blocks that have a version stay as they are.
  absl::Status Initialize(std::span<const float> weights);

  // Sends the contribution of `clock`, made of `examples` training examples (its weight; 0 is
  // legal). The call is done when the contribution is applied. In sync mode that needs the
  // contributions of all workers. `rates` as in PushPull.
  Ticket Push(uint64_t clock, uint64_t examples, std::span<const float> contribution,
              BlockRange blocks = kAllBlocks, ContributionRates rates = nullptr);
  // Reads the weights that a worker may see when it starts `clock`, as soon as they exist.
  Ticket Pull(uint64_t clock, std::span<float> weights, BlockRange blocks = kAllBlocks);
  // Reads the current weights, without waiting for anybody.
  Ticket PullLatest(std::span<float> weights, BlockRange blocks = kAllBlocks);
  // Does Push of `clock` and then Pull of `clock + 1`, in one round trip. With an elastic exchange,
  // `weights` receive the centre as it was before the contribution. `rates` are the contribution's
  // learning-rate factors; leave them null with an elastic exchange.
  Ticket PushPull(uint64_t clock, uint64_t examples, std::span<const float> contribution,
                  std::span<float> weights, BlockRange blocks = kAllBlocks,
                  ContributionRates rates = nullptr);
  // Reads the moving average of the weights (update.average), without waiting for anybody.
  Ticket PullAverage(std::span<float> weights);
  // Does PushPull for a contribution that the leader of this host's workers sends as part of its
  // sum (workers.per_host: combine, client/calls/host_group.h). This call sends no values, and the
  // residual stays as it is. The call is done when the leader's sum is applied.
  Ticket PushPullCombined(uint64_t clock, std::span<float> weights, BlockRange blocks);
  // Called once, when no part of a call is in progress any more, with the call's result. Runs on a
  // thread of the transport, without locks, perhaps before the function that began the call
  // returns.
  using Over = std::function<void(const absl::Status&)>;
  // Does PushPull for a contribution that is the mean of all workers' contributions
  // (topology.algorithm: ring, tree). It counts for each of them.
  void PushPullOfAll(uint64_t clock, uint64_t examples, std::span<const float> contribution,
                     std::span<float> weights, BlockRange blocks, ContributionRates rates,
                     Over over);
  // Does Pull, without a ticket.
  void PullThen(uint64_t clock, std::span<float> weights, BlockRange blocks, Over over);

  // Waits for the call. Returns its result, or its first error as soon as there is an error.
  // Returns DEADLINE_EXCEEDED after `deadline`. The call then goes on, and the caller may wait for
  // the ticket again.
  absl::StatusOr<Result> Wait(const Ticket& ticket, Time deadline = Time::max());
  // Returns true if Wait() would return at once. In that case DEADLINE_EXCEEDED from Wait() is the
  // error of the call itself.
  bool IsOver(const Ticket& ticket) const;

  // Waits until no part of the call is in progress any more. Call this after an error.
  void Settle(const Ticket& ticket);

  // The object that encodes contributions and keeps the residual: the difference that the encoding
  // has lost so far and that later contributions make up for. The residual is part of the worker's
  // state. Null if no residual is kept. Do not read or set the residual while another thread begins
  // a call that sends. Undo a clock only when no part of its contribution is in progress.
  ContributionEncoder* encoder() const { return codecs_.encoder(); }
  // The plan by which payloads are encoded. Null if they are not encoded.
  const CodecPlan* codec_plan() const { return codecs_.plan(); }
  // Makes `encoder` encode contributions and keep the residual. Call it before the first
  // contribution, and only if a residual is kept. The encoder outlives the client.
  void EncodeContributionsBy(ContributionEncoder& encoder) { codecs_.EncodeBy(encoder); }

  // The bytes sent and received so far.
  Traffic traffic() const { return codecs_.traffic(); }

  // Returns, in its server's words, what the earliest postponed call waits for ("block 3 clock 17:
  // waiting for worker 2"). Returns an empty string if no call was postponed.
  std::string Waiting() const { return queue_.Waiting(); }

  // Sets new addresses of the servers, whose number stays the same. Open calls are sent again to
  // the new addresses.
  void MoveServers(const std::vector<ServerEndpoint>& servers);

  // Ends all open and later calls with CANCELLED.
  void Cancel() { queue_.Cancel(); }

 private:
  ParameterClient(const ParameterClientOptions& options, BlockLayout layout,
                  std::unique_ptr<Transport> transport);
  Ticket Start(BlockExchange exchange);

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
  // The reason why the call could not start. OK if it has started.
  absl::Status refused_;
  CallQueue::Ticket calls_;
  std::shared_ptr<BlocksOperation> operation_;
};

}  // namespace leeway
