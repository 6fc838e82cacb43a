#include "server/shard.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "config/shards.h"

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

uint64_t Ticks(Time time) { return static_cast<uint64_t>(time.time_since_epoch().count()); }

}  // namespace

absl::StatusOr<std::unique_ptr<Shard>> Shard::Make(const Options& options, CutListener* cuts) {
  const uint32_t shards = ShardsOf(options.job);
  ASSIGN_OR_RETURN(const BlockLayout layout,
                   BlockLayout::FromWire(options.schema.total(), shards, options.block_elements));
  if (options.server >= shards) {
    return absl::InvalidArgumentError(
        absl::StrCat("shard ", options.server, " of a job with ", shards, " shards"));
  }
  if (options.schema.trained() > options.schema.total()) {
    return absl::InvalidArgumentError("schema.trained: more than schema.total");
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
    : sync_(options.job.consistency().mode() == v1::CONSISTENCY_MODE_SYNC),
      waits_for_own_only_(options.job.consistency().mode() == v1::CONSISTENCY_MODE_ASYNC),
      elastic_(options.job.exchange().has_elastic()),
      workers_(options.job.workers().count()),
      ends_by_sum_(options.length.total_clocks() > 0),
      nominal_examples_(static_cast<double>(options.job.data().batch_size()) *
                        std::max<uint64_t>(options.length.steps_per_clock(), 1)),
      schedule_(elastic_
                    ? std::nullopt
                    : std::optional(Schedule::OverClocks(options.job.update(), options.length))),
      cuts_(cuts),
      memory_(options.memory),
      contributions_(options.contributions),
      store_(layout, options.server, std::move(rule),
             {.trained = options.schema.trained(),
              .elastic = elastic_,
              .keep_previous = sync_,
              .memory = options.memory,
              .slot_memory = options.job.servers().replicas() > 1 ? options.memory : nullptr}),
      encoder_(std::move(codecs), store_),
      check_(store_, workers_, options.schema),
      admission_(layout.BlocksOn(options.server)) {
  const ConsistencyRules rules = RulesOf(options);
  for (uint32_t block = options.server; block < layout.blocks(); block += layout.servers()) {
    slots_.push_back(std::make_unique<Slot>(block, rules));
  }
}

absl::StatusOr<v1::AttachReply> Shard::Attach(uint32_t rank, uint64_t incarnation) {
  v1::AttachReply reply;
  reply.set_clock(std::numeric_limits<uint64_t>::max());
  for (const auto& slot : slots_) {
    MutexLock lock(slot->mutex);
    ASSIGN_OR_RETURN(uint64_t clock, slot->core.OnAttach(rank, incarnation));
    // What is said the replica has to know. In lockstep nobody else goes on meanwhile.
    const bool ahead =
        !slot->replicated.empty() && slot->core.counted(rank) > slot->replicated[rank];
    if (ahead && sync_ && !contributions_) {
      return absl::UnavailableError(
          absl::StrCat("block ", slot->block, ": waiting for its replica to have version ",
                       slot->core.progress().version, "; send the same again"));
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
  const auto opened = Open(header, payload, true);
  if (!opened.ok()) return done(opened.status());
  Slot& slot = SlotOf(header.block());
  Outbox outbox;
  {
    // The copy is made, and encoded, under the lock: it happens once in a block's life, before
    // anybody waits for it.
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
  const bool when_applied = wants_reply || waits_for_own_only_;
  auto opened = Open(header, std::move(payload), !when_applied);
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
      slot.contributions[request] = *std::move(opened);
      Decisions decisions = slot.core.OnContribution(
          {header.rank(), header.incarnation(), header.clock()}, request, when_applied, Ticks(now));
      accepted = decisions.accepted;
      if (!accepted) slot.contributions.erase(request);
      outbox = Act(slot, std::move(decisions));
    }
  }
  if (accepted && contributions_) contributions_->OnAccepted(header.rank(), header.clock());
  Finish(slot, std::move(outbox));
}

void Shard::InTurn(uint64_t parts, const std::function<void(uint64_t)>& run) {
  for (uint64_t part = 0; part < parts; ++part) run(part);
}

absl::Status Shard::CommitSet(uint64_t clock, const std::vector<uint32_t>& ranks,
                              const Share& share) {
  const bool rising =
      std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<uint32_t>()) == ranks.end();
  if (slots_.empty()) return absl::OkStatus();
  if (!contributions_ || ranks.empty() || ranks.back() >= workers_ || !rising) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the contributors of clock ", clock, ": some of ranks 0 to ", workers_ - 1,
        ", rising, in a job whose clocks need not be everybody's (consistency.backup_workers, ",
        "workers.on_worker_loss)"));
  }
  contributions_->OnCommitted(clock);
  share(slots_.size(), [&](uint64_t index) {
    Slot& slot = *slots_[index];
    Outbox outbox;
    {
      MutexLock lock(slot.mutex);
      outbox = Act(slot, slot.core.OnCommitted(clock, ranks));
    }
    Finish(slot, std::move(outbox));
  });
  return absl::OkStatus();
}

void Shard::Read(const v1::ExchangeHeader& header, bool latest, Time now, Done done,
                 Patience patience) {
  if (absl::Status status = check_.Names(header); !status.ok()) return done(std::move(status));
  Slot& slot = SlotOf(header.block());
  const RequestId request = next_request_.fetch_add(1, std::memory_order_relaxed);
  Outbox outbox;
  {
    MutexLock lock(slot.mutex);
    if (closed_) {
      outbox = Refuse(slot, std::move(done));
    } else {
      slot.readers[request] = {std::move(done), ReaderOptions::Of(header), std::move(patience),
                               true};
      const Sender sender{header.rank(), header.incarnation(), header.clock()};
      outbox = Act(slot, latest ? slot.core.OnReadLatest(request, Ticks(now))
                                : slot.core.OnRead(sender, request, Ticks(now)));
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
  // Who asks after this is refused under the block's lock; who asked before is among its waiters.
  closed_ = true;
  for (const auto& slot : slots_) {
    // The gate stays as it is: what its replica does not have never leaves.
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
  // To those who are sent changes it is what they had.
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
    if (sync_ && version != clock) {
      return absl::FailedPreconditionError(
          absl::StrCat("block ", slot->block, " is at version ", version, ", not at clock ", clock,
                       ": some worker's exchange is incomplete; the newest checkpoint stays"));
    }
    held.push_back({slot->block, ValuesOf(*slot), slot->core.progress()});
  }
  return held;
}

absl::StatusOr<Contribution> Shard::Open(const v1::ExchangeHeader& header, FloatPayload payload,
                                         bool finite) const {
  RETURN_IF_ERROR(check_.Names(header));
  Contribution contribution{header.rank(), header.clock(), header.examples(), {}};
  ASSIGN_OR_RETURN(contribution.payload, check_.Open(header, std::move(payload)));
  if (finite) RETURN_IF_ERROR(check_.Finite(header.block(), contribution));
  return contribution;
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
  HoldBack(slot, outbox.answers);
  for (RequestId request : decisions.dropped) slot.contributions.erase(request);
  if (decisions.update.has_value()) outbox.update = Begin(slot, *decisions.update);
  if (closed_) {
    // An update that ran when it was closed: nobody looks for late ones any more.
    GiveUpGated(slot, Ticks(Time::max()), outbox);
  }
  return outbox;
}

Shard::Outbox Shard::Refuse(const Slot& slot, Done done) {
  Outbox outbox;
  outbox.answers.push_back(
      {std::move(done), absl::UnavailableError(absl::StrCat(
                            "block ", slot.block, ": this server does not serve it any more; ask ",
                            "the coordinator who does, and send the same again"))});
  return outbox;
}

BlockReading Shard::ReadingOf(const Slot& slot, const Answer& answer, const Reader& reader) const {
  const v1::Encoding encoding = encoder_.encoding(slot.block);
  const bool previous = reader.before || answer.which == Readable::kPrevious;
  BlockReading reading;
  reading.header.set_block(slot.block);
  // Elastic: of what has been applied by now, the contribution included.
  const bool older = previous && !reader.before;
  reading.header.set_version(slot.core.progress().version - (older ? 1 : 0));
  reading.header.set_staleness(answer.staleness);
  reading.duplicate = answer.duplicate;
  if (reader.before) {
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
  // Every block of a checkpoint has the same kinds of values.
  if (encoder_.keeps_shadows())
    values.shadow = slot.sent.shadow ? slot.sent.shadow : values.weights;
  return values;
}

void Shard::Finish(Slot& slot, Outbox outbox) {
  while (true) {
    Replicate(slot);
    for (Leaving& answer : outbox.answers) answer.done(std::move(answer.result));
    for (const auto& [patience, missing] : outbox.reminders) {
      patience.sender->OnMissing(patience.id, missing);
    }
    if (outbox.held.has_value()) cuts_->OnHeld(outbox.held->first, std::move(outbox.held->second));
    if (!outbox.update.has_value()) return;
    Running running = std::move(*outbox.update);
    const std::vector<Refusal> refusals = Run(slot, running);
    outbox = refusals.empty() ? Commit(slot, std::move(running))
                              : Reject(slot, std::move(running), refusals);
  }
}

}  // namespace leeway
