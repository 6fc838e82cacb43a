#include "server/shard/shard.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/block_cuts.h"
#include "common/counted.h"
#include "common/status.h"
#include "common/update/factors.h"
#include "config/shards.h"
#include "config/topology.h"

namespace leeway {
namespace {

ConsistencyRules RulesOf(const Shard::Options& options) {
  const v1::TrainingJob& job = options.job;
  ConsistencyRules rules;
  switch (job.consistency().mode()) {
    case v1::CONSISTENCY_MODE_SYNC:
      rules.mode = Consistency::kSync;
      break;
    case v1::CONSISTENCY_MODE_BOUNDED:
      rules.mode = Consistency::kBounded;
      break;
    case v1::CONSISTENCY_MODE_ASYNC:
      rules.mode = Consistency::kAsync;
      break;
  }
  rules.staleness = job.consistency().staleness();
  rules.workers = job.workers().count();
  rules.elastic = job.exchange().has_elastic();
  rules.cut_every = options.cut_every;
  rules.committed_sets = options.contributions != nullptr;
  return rules;
}

// Returns why no worker may send one contribution for all. Empty if one may.
std::string WhyNotOfAll(const Shard::Options& options) {
  if (!SumsTravel(options.job) || options.job.consistency().mode() != v1::CONSISTENCY_MODE_SYNC) {
    return "each worker of this job sends its own contribution (only topology: {type: all_reduce, "
           "algorithm: ring} and tree pass sums on)";
  }
  if (options.contributions == nullptr) return "";
  return "a clock of this job may lack some workers (consistency.backup_workers, "
         "workers.on_worker_loss: continue), so each worker must send its own contribution";
}

uint64_t Ticks(Time time) { return static_cast<uint64_t>(time.time_since_epoch().count()); }

}  // namespace

absl::StatusOr<std::unique_ptr<Shard>> Shard::Make(const Options& options, CutListener* cuts) {
  const uint32_t shards = ShardsOf(options.job);
  ASSIGN_OR_RETURN(const BlockLayout layout,
                   BlockLayout::FromWire(options.schema.total(), shards, options.block_elements,
                                         BlockCutsOf(options.schema)));
  if (options.server >= shards) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shard ", options.server, " does not exist: the job has ", Counted(shards, "shard")));
  }
  if (options.schema.trained() > options.schema.total()) {
    return absl::InvalidArgumentError("schema.trained is larger than schema.total");
  }
  ASSIGN_OR_RETURN(std::unique_ptr<UpdateRule> rule, MakeServerRule(options.job));
  ASSIGN_OR_RETURN(auto codecs, CodecPlan::Of(options.job, options.schema, layout));
  return std::unique_ptr<Shard>(
      new Shard(options, layout, std::move(rule), std::move(codecs), cuts));
}

absl::StatusOr<std::vector<std::string>> Shard::SlotNames(const v1::TrainingJob& job) {
  ASSIGN_OR_RETURN(const std::unique_ptr<UpdateRule> rule, MakeServerRule(job));
  const auto names = rule->slots();
  return std::vector<std::string>(names.begin(), names.end());
}

Shard::Shard(const Options& options, const BlockLayout& layout, std::unique_ptr<UpdateRule> rule,
             std::shared_ptr<const CodecPlan> codecs, CutListener* cuts)
    : scale_(options.job, options.length),
      cuts_(cuts),
      memory_(options.memory),
      contributions_(options.contributions),
      store_(layout, options.server, std::move(rule),
             {.trained = options.schema.trained(),
              .averaged = AveragedElementsOf(options.schema),
              .parts = UpdatePartsOf(options.schema, options.job.update()),
              .elastic = scale_.elastic(),
              .keep_previous = scale_.sync(),
              .memory = options.memory,
              .slot_memory = options.job.servers().replicas() > 1 ? options.memory : nullptr}),
      encoder_(std::move(codecs), store_),
      check_(store_, scale_.workers(), options.schema,
             {.combines = scale_.combines(),
              .has_rate = !scale_.elastic(),
              .not_of_all = WhyNotOfAll(options)}),
      admission_(layout.BlocksOn(options.server)) {
  const ConsistencyRules rules = RulesOf(options);
  for (uint32_t block = options.server; block < layout.blocks(); block += layout.shards()) {
    slots_.push_back(std::make_unique<Slot>(block, rules));
  }
}

absl::StatusOr<v1::AttachReply> Shard::Attach(uint32_t rank, uint64_t incarnation) {
  v1::AttachReply reply;
  reply.set_clock(std::numeric_limits<uint64_t>::max());
  for (const auto& slot : slots_) {
    MutexLock lock(slot->mutex);
    if (closed_) return NotServed(*slot);
    ASSIGN_OR_RETURN(uint64_t clock, slot->core.OnAttach(rank, incarnation));
    // A worker must not learn a clock that the replica does not have yet. In sync mode the caller
    // can wait for the replica, because no other worker continues meanwhile.
    const bool ahead =
        !slot->replicated.empty() && slot->core.counted(rank) > slot->replicated[rank];
    if (ahead && scale_.sync() && !contributions_) {
      return absl::UnavailableError(absl::StrCat(
          WaitsForReplica(*slot, slot->core.progress().version), "; send the request again"));
    }
    if (ahead) clock = slot->replicated[rank];
    reply.set_clock(std::min(reply.clock(), clock));
    const uint64_t counted = slot->core.counted(rank);
    reply.set_counted(
        std::max(reply.counted(), ahead ? std::min(counted, slot->replicated[rank]) : counted));
    if (!slot->core.initialized()) reply.set_needs_initialize(true);
  }
  return reply;
}

void Shard::Initialize(const v1::ExchangeHeader& header, const FloatPayload& payload, Done done) {
  const auto opened = check_.Open(header, payload);
  const absl::Status status =
      opened.ok() ? check_.Finite(header.block(), *opened) : opened.status();
  if (!status.ok()) return done(status);
  Slot& slot = SlotOf(header.block());
  Outbox outbox;
  {
    // The block is copied and encoded under the lock. This happens once in the life of the block,
    // before any request waits for the lock.
    MutexLock lock(slot.mutex);
    if (closed_) {
      outbox = Refuse(slot, std::move(done));
    } else {
      BlockReading reading;
      reading.duplicate = slot.core.initialized();
      if (!reading.duplicate) {
        store_.Set(slot.block, opened->payload);
        slot.sent = encoder_.First(slot.block, store_.CurrentWeights(slot.block), {});
        outbox = Act(slot, slot.core.OnInitialized({}));
      }
      outbox.answers.push_back({std::move(done), std::move(reading)});
    }
  }
  Finish(slot, std::move(outbox));
}

void Shard::Contribute(const v1::ExchangeHeader& header, FloatPayload payload, bool wants_reply,
                       Time now, Done done, Patience patience) {
  auto opened = check_.OpenContribution(header, std::move(payload));
  if (!opened.ok()) return done(opened.status());
  Slot& slot = SlotOf(header.block());
  const RequestId request = next_request_.fetch_add(1, std::memory_order_relaxed);
  Outbox outbox;
  bool accepted = false;
  {
    MutexLock lock(slot.mutex);
    if (closed_) {
      outbox = Refuse(slot, std::move(done));
    } else {
      slot.readers[request] = {std::move(done), ReaderOptions::Of(header), std::move(patience),
                               wants_reply};
      const bool of_all = opened->of_all;
      slot.contributions[request] = *std::move(opened);
      const Sender sender{header.rank(), header.incarnation(), header.clock()};
      Decisions decisions =
          of_all ? slot.core.OnContributionOfAll(sender, request, wants_reply, Ticks(now))
                 : slot.core.OnContribution(sender, request, wants_reply, Ticks(now));
      accepted = decisions.accepted;
      if (!accepted) slot.contributions.erase(request);
      outbox = Act(slot, std::move(decisions));
    }
  }
  if (accepted && contributions_) contributions_->OnAccepted(header.rank(), header.clock());
  Finish(slot, std::move(outbox));
}

void Shard::Read(const v1::ExchangeHeader& header, ReadKind kind, Time now, Done done,
                 Patience patience) {
  if (!check_.names(header)) return done(check_.WrongNames(header));
  if (kind == ReadKind::kAverage && !store_.keeps_average()) {
    return done(absl::FailedPreconditionError(
        "average: the job has no update.average, so its servers keep no moving average"));
  }
  Slot& slot = SlotOf(header.block());
  const RequestId request = next_request_.fetch_add(1, std::memory_order_relaxed);
  Outbox outbox;
  {
    MutexLock lock(slot.mutex);
    if (closed_) {
      outbox = Refuse(slot, std::move(done));
    } else {
      slot.readers[request] = {std::move(done), ReaderOptions::Of(header, kind),
                               std::move(patience), true};
      const Sender sender{header.rank(), header.incarnation(), header.clock()};
      outbox = Act(slot, kind == ReadKind::kAtClock ? slot.core.OnRead(sender, request, Ticks(now))
                                                    : slot.core.OnReadLatest(request, Ticks(now)));
    }
  }
  Finish(slot, std::move(outbox));
}

void Shard::Tick(Time since) {
  const uint64_t ticks = Ticks(since);
  for (const auto& slot : slots_) {
    Outbox outbox;
    {
      MutexLock lock(slot->mutex);
      const auto stays = [&](RequestId request) REQUIRES(slot->mutex) {
        return !closed_ && slot->readers.at(request).patience.stays();
      };
      if (slot->core.has_waiters()) {
        outbox = Act(*slot, slot->core.OnTick(ticks, ticks + kWaitTicks, stays));
      }
      GiveUpGated(*slot, ticks, outbox);
    }
    Finish(*slot, std::move(outbox));
  }
}

uint64_t Shard::waiting() const {
  uint64_t waiting = 0;
  for (const auto& slot : slots_) {
    MutexLock lock(slot->mutex);
    waiting += slot->readers.size();
  }
  return waiting;
}

void Shard::SetLive(uint32_t rank, bool live) {
  for (const auto& slot : slots_) {
    Outbox outbox;
    {
      MutexLock lock(slot->mutex);
      outbox = Act(*slot, slot->core.OnSetLive(rank, live));
    }
    Finish(*slot, std::move(outbox));
  }
  if (contributions_) contributions_->OnLive(rank, live);
}

void Shard::Close() {
  // From now on requests are refused under the block's lock. Requests that came before are among
  // the block's waiting requests.
  closed_ = true;
  for (const auto& slot : slots_) {
    // The gate does not change any more, so answers that show more than the replica's state never
    // leave.
    MutexLock lock(slot->mutex);
    slot->replica.reset();
  }
  Tick(Time::max());
}

void Shard::Load(uint32_t block, BlockValues values, BlockProgress progress,
                 SharedFloats previous) {
  if (contributions_) contributions_->OnLoaded(progress.version);
  Slot& slot = SlotOf(block);
  SentVersion sent = encoder_.First(block, values.weights, std::move(values.shadow));
  const bool has_previous = static_cast<bool>(previous);
  // The previous version is the shadow of workers that receive changes.
  SentVersion before = has_previous ? encoder_.First(block, previous, previous) : SentVersion();
  Outbox outbox;
  {
    MutexLock lock(slot.mutex);
    slot.sent = std::move(sent);
    store_.Set(block, std::move(values));
    slot.previously_sent = std::move(before);
    store_.SetPrevious(block, std::move(previous));
    outbox = Act(slot, slot.core.OnInitialized(std::move(progress), has_previous));
    admission_.OnVersion(IndexOf(block), slot.core.progress().version);
  }
  Finish(slot, std::move(outbox));
}

absl::StatusOr<std::vector<HeldBlock>> Shard::Hold(uint64_t clock) const {
  std::vector<HeldBlock> held;
  for (const auto& slot : slots_) {
    MutexLock lock(slot->mutex);
    if (!slot->core.initialized() || !slot->core.idle()) {
      return absl::UnavailableError(
          absl::StrCat("block ", slot->block, " has no values yet, or is being updated"));
    }
    const uint64_t version = slot->core.progress().version;
    if (scale_.sync() && version != clock) {
      return absl::FailedPreconditionError(
          absl::StrCat("block ", slot->block, " is at version ", version, ", not at clock ", clock,
                       ": a worker's exchange is incomplete, so the newest checkpoint stays"));
    }
    held.push_back({slot->block, ValuesOf(*slot), slot->core.progress()});
  }
  return held;
}

Shard::Outbox Shard::Act(Slot& slot, Decisions decisions) {
  Outbox outbox;
  if (decisions.cut.has_value()) {
    outbox.held.emplace(*decisions.cut,
                        HeldBlock{slot.block, ValuesOf(slot), slot.core.progress()});
  }
  for (const Answer& answer : decisions.answers) {
    auto reader = slot.readers.extract(answer.request);
    BlockReading reading = ReadingOf(slot, answer, reader.mapped());
    outbox.answers.push_back(
        {std::move(reader.mapped().done), std::move(reading), std::move(reader.mapped().patience)});
  }
  for (Refusal& refusal : decisions.refusals) {
    auto reader = slot.readers.extract(refusal.request);
    outbox.answers.push_back({std::move(reader.mapped().done), std::move(refusal.status)});
  }
  for (const Refusal& reminder : decisions.reminders) {
    outbox.reminders.emplace_back(slot.readers.at(reminder.request).patience,
                                  std::string(reminder.status.message()));
  }
  if (!slot.gate.IsOpen(slot.core.progress().version)) HoldBack(slot, outbox.answers);
  for (RequestId request : decisions.dropped) slot.contributions.erase(request);
  if (decisions.update.has_value()) {
    if (scale_.elastic() && !scale_.sync()) KeepBefore(slot, *decisions.update);
    outbox.update = Running{
        .requests = decisions.update->contributions,
        .contributions = {},
        .step = scale_.StepOf(slot.core.progress(), slot.core.live(), decisions.update->clock),
        .awaited = Awaits(slot),
        .sent_before = slot.sent};
    for (RequestId request : outbox.update->requests) {
      auto held = slot.contributions.extract(request);
      outbox.update->contributions.push_back(std::move(held.mapped()));
    }
  }
  // An update that was running at Close() may produce late answers. They are refused here, because
  // no Tick comes any more.
  if (closed_) GiveUpGated(slot, Ticks(Time::max()), outbox);
  return outbox;
}

std::string Shard::WaitsForReplica(const Slot& slot, uint64_t version) {
  return absl::StrCat("block ", slot.block, ": the server waits until the replica has version ",
                      version);
}

absl::Status Shard::NotServed(const Slot& slot) {
  return absl::UnavailableError(
      absl::StrCat("block ", slot.block,
                   ": this server no longer serves this block; ask the coordinator which "
                   "server does, and send the request again"));
}

Shard::Outbox Shard::Refuse(const Slot& slot, Done done) {
  Outbox outbox;
  outbox.answers.push_back({std::move(done), NotServed(slot)});
  return outbox;
}

BlockReading Shard::ReadingOf(const Slot& slot, const Answer& answer, const Reader& reader) const {
  const v1::Encoding encoding = encoder_.encoding(slot.block);
  const bool previous = reader.before || answer.which == Readable::kPrevious;
  BlockReading reading;
  reading.header.set_block(slot.block);
  // The version in an answer to an elastic exchange counts all applied contributions, including
  // that of the request.
  const bool older = previous && !reader.before;
  reading.header.set_version(slot.core.progress().version - (older ? 1 : 0));
  reading.header.set_staleness(answer.staleness);
  reading.duplicate = answer.duplicate;
  if (!reader.wants_values) return reading;
  if (reader.options.kind == ReadKind::kAverage) {
    reading.values = store_.CurrentAverage(slot.block);
  } else if (reader.before) {
    reading.Give(reader.before, reader.sent_before, encoding, reader.options);
  } else if (reader.options.have == reading.header.version()) {
    reading.header.set_unchanged(true);
  } else if (previous) {
    reading.Give(store_.PreviousWeights(slot.block), slot.previously_sent, encoding,
                 reader.options);
  } else {
    reading.Give(store_.CurrentWeights(slot.block), slot.sent, encoding, reader.options);
  }
  return reading;
}

BlockValues Shard::ValuesOf(const Slot& slot) const {
  BlockValues values = store_.Current(slot.block);
  // All blocks of a checkpoint must have the same keys, so a block without a shadow saves its
  // weights as the shadow.
  if (encoder_.keeps_shadows())
    values.shadow = slot.sent.shadow ? slot.sent.shadow : values.weights;
  return values;
}

void Shard::Finish(Slot& slot, Outbox outbox) {
  while (true) {
    if (replicates_) Replicate(slot);
    for (Leaving& answer : outbox.answers) answer.done(std::move(answer.result));
    for (const auto& [patience, missing] : outbox.reminders) {
      patience.sender->OnMissing(patience.id, missing);
    }
    if (outbox.held.has_value()) cuts_->OnHeld(outbox.held->first, std::move(outbox.held->second));
    if (!outbox.update.has_value()) return;
    outbox = Run(slot, *std::move(outbox.update));
  }
}

}  // namespace leeway
