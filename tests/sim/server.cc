#include "tests/sim/server.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"

namespace leeway::sim {

SimServer::SimServer(uint32_t index, NodeId node, const Shape& shape, const Place& place)
    : index_(index), node_(node), place_(place) {
  live_.fill(true);
  blocks_.reserve(shape.blocks / shape.servers + 1);
  for (uint32_t block = index_; block < shape.blocks; block += shape.servers) {
    blocks_.emplace_back(block, shape.Rules());
  }
  if (!shape.sets() || blocks_.empty()) return;
  held_.emplace(HeldBook::Rules{.workers = shape.workers,
                                .backup = shape.backup,
                                .live_only = shape.continues,
                                .blocks = static_cast<uint32_t>(blocks_.size())});
}

Sender SimServer::SenderOf(const Message& request) {
  return {request.rank, request.incarnation, request.clock};
}

// ---- requests

void SimServer::Begin(Context& context, uint64_t clock, const Disk& disk) {
  reported_cut_ = clock;
  const uint64_t generation = place_.generation;
  if (context.began_at.try_emplace(generation, clock).first->second != clock) {
    context.Violate("all servers go back to one checkpoint", [&] {
      return absl::StrCat("generation ", generation, ", shard ", index_, ": ", clock);
    });
  }
  if (clock == 0) return;
  if (context.bug == Bug::kHalfWay && index_ == 0) {
    Initialize(context);
  } else {
    Load(context, clock, disk);
  }
}

// Like Shard::Close: ends every wait.
void SimServer::Close(Context& context) {
  for (Block& block : blocks_) {
    for (const Reader& reader : block.readers) {
      context.Send(ReplyTo(reader.message, absl::StatusCode::kUnavailable));
    }
    block.readers.clear();
    GiveUpGated(context, block, 0, true);
  }
}

const std::vector<Version>* SimServer::FindPart(Context& context, uint64_t clock,
                                                const Disk& disk) const {
  const auto written = context.cut_hashes.find({clock, index_});
  const bool known = written != context.cut_hashes.end();
  auto file = disk.lower_bound({clock, 0});
  const bool any = file != disk.end() && file->first.first == clock;
  for (; file != disk.end() && file->first.first == clock; ++file) {
    if (!known || HashOf(file->second) == written->second) return &file->second;
  }
  context.Violate(any ? "a complete checkpoint stays as it is"
                      : "every server has its part of a complete checkpoint",
                  [&] { return absl::StrCat("shard ", index_, ", cut ", clock); });
  return nullptr;
}

void SimServer::Load(Context& context, uint64_t clock, const Disk& disk) {
  const std::vector<Version>* const saved = FindPart(context, clock, disk);
  if (saved == nullptr) return;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    Block& block = blocks_[i];
    block.current = (*saved)[i];
    block.first_version = block.current.number;
    block.last_cut = clock;
    block.acknowledged = block.current.clocks;
    Act(context, block, block.core.OnInitialized(ProgressOf(context, block.current)));
  }
}

BlockProgress SimServer::ProgressOf(const Context& context, const Version& version) const {
  BlockProgress progress{version.number, {}};
  for (uint32_t r = 0; r < context.shape.workers; ++r) {
    // In sync mode a clock is over for all ranks.
    progress.clocks.push_back(context.shape.sync()
                                  ? version.number
                                  : static_cast<uint64_t>(std::popcount(version.clocks[r])));
  }
  return progress;
}

uint64_t SimServer::Write(uint64_t clock, Disk& disk) const {
  std::vector<Version>& versions = disk[{clock, owner()}];
  versions.clear();
  for (const Block& block : blocks_) versions.push_back(block.cuts.at(clock));
  return HashOf(versions);
}

uint64_t SimServer::HashOf(const std::vector<Version>& versions) {
  uint64_t hash = 1;
  for (const Version& version : versions) {
    hash = Mix(Mix(hash, version.number), version.values);
    for (const uint64_t clocks : version.clocks) hash = Mix(hash, clocks);
  }
  return hash;
}

void SimServer::OnRequest(Context& context, const Message& request) {
  if (request.kind == Kind::kAttach) return Attach(context, request);
  Block& block = BlockOf(context, request.block);
  block.readers.push_back({++last_request_, request, context.LocalNow(node_), std::nullopt});
  const auto now = static_cast<uint64_t>(context.LocalNow(node_));
  Sender sender = SenderOf(request);
  uint64_t& newest = block.newest[request.rank];
  if (context.bug == Bug::kNoFence) sender.incarnation = std::max(sender.incarnation, newest);
  switch (request.kind) {
    case Kind::kInitialize: {
      const bool first = !block.core.initialized();
      if (first) block.current.values = FirstValues(block.number);
      const Decisions decisions = block.core.OnInitialized({});
      DoAnswer(context, block, {last_request_, Readable::kCurrent, 0, false});
      return Act(context, block, decisions);
    }
    case Kind::kPull:
      Act(context, block, block.core.OnRead(sender, last_request_, now));
      break;
    case Kind::kLatest:
      Act(context, block, block.core.OnReadLatest(last_request_, now));
      break;
    default:
      Contribute(context, block, request, sender);
  }
  newest = std::max(newest, request.incarnation);
  ScheduleTick(context);
}

void SimServer::Contribute(Context& context, Block& block, const Message& request,
                           const Sender& sender) {
  const bool reply = request.kind == Kind::kPushPull;
  const auto now = static_cast<uint64_t>(context.LocalNow(node_));
  const Decisions decisions = block.core.OnContribution(sender, last_request_, reply, now);
  if (decisions.accepted) {
    CheckAccepted(context, block, request);
    ++context.counts.contributions;
    if (!reply) ++context.counts.pushes;
    block.kept.push_back({last_request_, request.rank, request.clock, request.value});
    if (context.bug == Bug::kPushHeld && !reply) {
      Message early = ReplyTo(request, absl::StatusCode::kOk);
      early.version = block.current;
      Leave(context, block, early);
    }
  }
  Act(context, block, decisions);
  if (held_ && decisions.accepted && held_->OnAccepted(request.rank, request.clock)) {
    TellHeld(context);
  }
}

void SimServer::Attach(Context& context, const Message& request) {
  Message reply = ReplyTo(request, absl::StatusCode::kOk);
  reply.clock = UINT64_MAX;
  reply.value = 0;
  for (Block& block : blocks_) {
    const auto attached = block.core.OnAttach(request.rank, request.incarnation);
    if (!attached.ok()) {
      reply.code = attached.status().code();
      ++context.counts.fenced;
      break;
    }
    uint64_t clock = *attached;
    const bool ahead = block.replicated &&
                       block.core.counted(request.rank) > (*block.replicated)[request.rank] &&
                       context.bug != Bug::kAttachAhead;
    if (ahead && context.shape.sync() && !context.shape.sets()) {
      reply.code = absl::StatusCode::kUnavailable;
      break;
    }
    if (ahead) clock = (*block.replicated)[request.rank];
    reply.clock = std::min(reply.clock, clock);
    const uint64_t counted = block.core.counted(request.rank);
    reply.value = std::max(reply.value,
                           ahead ? std::min(counted, (*block.replicated)[request.rank]) : counted);
    reply.flag |= !block.core.initialized();
    block.newest[request.rank] = std::max(block.newest[request.rank], request.incarnation);
  }
  // A successor need not know of a refusal, so it does not wait for the replica.
  if (reply.code != absl::StatusCode::kOk) return context.Send(reply);
  LeaveNow(context, blocks_.front(), reply);
}

void SimServer::Initialize(Context& context) {
  for (Block& block : blocks_) {
    block.current.values = FirstValues(block.number);
    Act(context, block, block.core.OnInitialized({}));
  }
}

// ---- what the cores decide

void SimServer::Act(Context& context, Block& block, const Decisions& decisions) {
  if (decisions.cut) TakeCut(context, block, *decisions.cut);
  const bool torn = context.bug == Bug::kTornRead && decisions.update;
  if (torn) BeginUpdate(context, block, *decisions.update);
  for (const Answer& answer : decisions.answers) DoAnswer(context, block, answer);
  for (const Refusal& refusal : decisions.refusals) Refuse(context, block, refusal);
  for (const Refusal& reminder : decisions.reminders) Remind(context, block, reminder);
  if (!decisions.dropped.empty()) Drop(context, block, decisions.dropped);
  if (decisions.update && !torn) BeginUpdate(context, block, *decisions.update);
  if (replica_) Replicate(context, block);
}

void SimServer::TakeCut(Context& context, Block& block, uint64_t cut) {
  if (context.bug == Bug::kLateCut && (block.skipped_cut = !block.skipped_cut)) return;
  ++context.counts.cuts;
  const uint64_t every = context.shape.cut_every;
  if (cut != (block.last_cut / every + 1) * every) {
    context.Violate("a cut every k clocks", [&] {
      return absl::StrCat("block ", block.number, " took the cut at ", cut, " after that at ",
                          block.last_cut);
    });
  }
  block.last_cut = cut;
  const bool torn = context.bug == Bug::kTornCut && context.Chance(64);
  block.cuts[cut] = torn ? block.previous : block.current;
  CheckCut(context, cut);
}

bool SimServer::HasCut(uint64_t clock) const {
  return std::all_of(blocks_.begin(), blocks_.end(),
                     [&](const Block& block) { return block.cuts.contains(clock); });
}

std::optional<uint64_t> SimServer::TakeCompleteCut() {
  if (blocks_.empty()) return std::nullopt;
  const auto next = blocks_.front().cuts.upper_bound(reported_cut_);
  if (next == blocks_.front().cuts.end() || !HasCut(next->first)) return std::nullopt;
  reported_cut_ = next->first;
  return reported_cut_;
}

std::vector<SimServer::Reader>::iterator SimServer::Find(Block& block, RequestId request) {
  return std::find_if(block.readers.begin(), block.readers.end(),
                      [&](const Reader& r) { return r.request == request; });
}

void SimServer::Remind(Context& context, Block& block, const Refusal& reminder) {
  const auto found = Find(block, reminder.request);
  if (found == block.readers.end()) return;
  found->since = context.LocalNow(node_);
  ++context.counts.waits_reminded;
  if (block.core.initialized()) CheckNamesMissing(context, block, *found, reminder.status);
  Message reply = ReplyTo(found->message, reminder.status.code());
  reply.flag = true;
  context.Send(reply);
}

void SimServer::Refuse(Context& context, Block& block, const Refusal& refusal) {
  const auto found = Find(block, refusal.request);
  if (found == block.readers.end()) return;
  const Message reply = ReplyTo(found->message, refusal.status.code());
  if (absl::IsAborted(refusal.status)) ++context.counts.fenced;
  if (absl::IsAlreadyExists(refusal.status)) ++context.counts.late;
  if (absl::IsUnavailable(refusal.status) && block.core.initialized()) {
    ++context.counts.waits_refused;
    CheckNamesMissing(context, block, *found, refusal.status);
  }
  block.readers.erase(found);
  context.Send(reply);
}

// ---- answers

void SimServer::DoAnswer(Context& context, Block& block, const Answer& answer) {
  const auto found = Find(block, answer.request);
  if (found == block.readers.end()) {
    return context.Violate("each request is answered once", [&] {
      return absl::StrCat("block ", block.number, ": request ", answer.request, " has gone");
    });
  }
  if (context.bug == Bug::kLoseWaiter && found + 1 != block.readers.end() && context.Chance(8)) {
    return;
  }
  Message reply = ReplyTo(found->message, absl::StatusCode::kOk);
  reply.duplicate = answer.duplicate;
  context.counts.duplicates += answer.duplicate ? 1 : 0;
  reply.version = Shown(context, block, *found, answer);
  CheckRead(context, block, *found, answer, reply.version);
  const Kind kind = found->message.kind;
  const bool pushes = kind == Kind::kPush || kind == Kind::kPushPull;
  if (pushes) {
    CheckApplied(context, block, reply.rank, uint64_t{1} << reply.clock);
    block.acknowledged[reply.rank] |= uint64_t{1} << reply.clock;
  }
  if (pushes && answer.duplicate && context.bug == Bug::kIgnoreDuplicates) {
    Apply(context, block, {0, reply.rank, reply.clock, reply.value});
  }
  block.readers.erase(found);
  // A block's first version is not a contribution: a replica without it is not synced.
  if (kind == Kind::kInitialize) return LeaveNow(context, block, reply);
  Leave(context, block, reply);
}

Version SimServer::Shown(Context& context, const Block& block, const Reader& reader,
                         const Answer& answer) {
  if (reader.before) return *reader.before;
  bool previous = answer.which == Readable::kPrevious;
  context.counts.previous_reads += previous ? 1 : 0;
  if (context.bug == Bug::kWrongVersion && context.Chance(16)) previous = !previous;
  return previous ? block.previous : block.current;
}

// ---- time, membership

void SimServer::ScheduleTick(Context& context) {
  // In the whole world the process ticks instead.
  if (tick_scheduled_ || context.by_choice || context.shape.whole) return;
  for (const Block& block : blocks_) {
    if (block.readers.empty()) continue;
    tick_scheduled_ = true;
    Message timer;
    timer.kind = Kind::kServerTick;
    return context.After(node_, kServerTickEvery, timer);
  }
}

void SimServer::OnTick(Context& context) {
  tick_scheduled_ = false;
  if (held_) TickHeld(context);
  const Micros now = context.LocalNow(node_);
  const Micros since = now - kWaitLimit;
  for (Block& block : blocks_) {
    if (!block.gated.empty()) GiveUpGated(context, block, since, false);
    if (replica_) Replicate(context, block);
    if (block.core.has_waiters() && since > 0 && context.bug != Bug::kNoTick) {
      // A request on a stream goes on waiting. A unary request is refused.
      const auto stays = [&](RequestId request) {
        const auto found = Find(block, request);
        return found != block.readers.end() && found->message.attempt % 2 == 1;
      };
      Act(context, block,
          block.core.OnTick(static_cast<uint64_t>(since), static_cast<uint64_t>(now), stays));
    }
    for (const Reader& reader : block.readers) {
      if (reader.since > since) continue;
      context.Violate("who waits is answered in time", [&] {
        return absl::StrCat("block ", block.number, ", worker ", reader.message.rank, ", clock ",
                            reader.message.clock);
      });
    }
  }
  ScheduleTick(context);
}

void SimServer::OnSetLive(Context& context, uint32_t rank, bool live) {
  live_[rank] = live;
  if (context.bug == (live ? Bug::kForgetReturn : Bug::kForgetLost)) return;
  for (Block& block : blocks_) Act(context, block, block.core.OnSetLive(rank, live));
  if (!held_) return;
  held_->OnLive(rank, live);
  TellHeld(context);
}

absl::StatusOr<uint64_t> SimServer::Hold(const Context& context, uint64_t clock, Disk& disk) const {
  for (const Block& block : blocks_) {
    if (!block.core.initialized() || !block.core.idle()) return absl::UnavailableError("busy");
    if (context.shape.sync() && block.core.progress().version != clock) {
      return absl::FailedPreconditionError("torn");
    }
  }
  std::vector<Version>& versions = disk[{clock, owner()}];
  versions.clear();
  for (const Block& block : blocks_) versions.push_back(block.current);
  return HashOf(versions);
}

// ---- the whole

uint64_t SimServer::version(uint32_t number) const {
  for (const Block& block : blocks_) {
    if (block.number == number) return block.current.number;
  }
  return 0;
}

uint64_t SimServer::Hash() const {
  uint64_t hash = 1;
  for (const Block& block : blocks_) {
    hash = Mix(Mix(hash, block.current.number), block.current.values);
    hash = Mix(hash, block.running ? 1 : 0);
    for (const uint64_t clocks : block.current.clocks) hash = Mix(hash, clocks);
    for (const uint64_t incarnation : block.newest) hash = Mix(hash, incarnation);
    for (const uint64_t clocks : block.acknowledged) hash = Mix(hash, clocks);
    for (const Contribution& kept : block.kept) {
      hash = Mix(hash, Mix(kept.rank, kept.clock));
    }
    // All waiting requests are answered at the same time, so their order means nothing.
    uint64_t readers = 0;
    for (const Reader& reader : block.readers) {
      const Message& message = reader.message;
      readers += Mix(Mix(static_cast<uint64_t>(message.kind), message.clock),
                     Mix(Mix(message.life, message.attempt), message.call));
    }
    hash = Mix(hash, readers);
  }
  return hash;
}

}  // namespace leeway::sim
