#include "tests/sim/exhaustive.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/sim/server.h"
#include "tests/sim/worker.h"

namespace leeway::sim {
namespace {

Shape SmallShape(const Wanted& wanted) {
  Shape shape;
  shape.mode = wanted.mode.value_or(Consistency::kSync);
  shape.staleness = shape.mode == Consistency::kBounded ? 1 : 0;
  shape.cut_every = 1;
  shape.workers = shape.servers = shape.blocks = shape.clocks = 2;
  return shape;
}

// What may happen next: a pending event arrives or is repeated, or a worker crashes.
struct Choice {
  enum Kind { kArrive, kRepeat, kCrash } kind = kArrive;
  uint32_t which = 0;
};

class SmallWorld {
 public:
  explicit SmallWorld(const Wanted& wanted) : context_(SmallShape(wanted), {}, wanted.bug, 1) {
    context_.by_choice = true;
    servers_.reserve(context_.shape.servers);
    for (uint32_t i = 0; i < context_.shape.servers; ++i) {
      servers_.emplace_back(i, static_cast<NodeId>(kServer0 + i), context_.shape,
                            SimServer::Place{1, 0, 0, 0});
      servers_.back().Initialize(context_);
    }
    workers_.reserve(context_.shape.workers);
    for (uint32_t rank = 0; rank < context_.shape.workers; ++rank) {
      workers_.emplace_back(std::in_place, rank, rank + 1);
      context_.newest[rank] = 1;
      workers_.back()->StartTraining(context_, 1);
    }
  }

  std::vector<Choice> Choices() const {
    std::vector<Choice> choices;
    std::unordered_set<uint64_t> seen;
    for (uint32_t i = 0; i < context_.events.size(); ++i) {
      // Two copies of one message are the same choice.
      if (!seen.insert(HashOf(context_.events[i])).second) continue;
      choices.push_back({Choice::kArrive, i});
      const bool message = context_.events[i].kind != Kind::kApplied;
      if (!repeated_ && message) choices.push_back({Choice::kRepeat, i});
    }
    for (uint32_t rank = 0; !crashed_ && rank < context_.shape.workers; ++rank) {
      if (workers_[rank]->end() == SimWorker::End::kNone) choices.push_back({Choice::kCrash, rank});
    }
    return choices;
  }

  std::string Do(const Choice& choice) {
    if (choice.kind == Choice::kCrash) return Crash(choice.which);
    if (choice.kind == Choice::kRepeat) {
      repeated_ = true;
      const Message message = context_.events[choice.which];
      context_.Push(0, message);
      return absl::StrCat("repeated: ", Describe(message));
    }
    const Message event = context_.events.Take(choice.which);
    Deliver(event);
    ForgetLateReplies();
    return Describe(event);
  }

  void CheckEnd() {
    for (SimServer& server : servers_) server.CheckAtEnd(context_);
    for (const auto& worker : workers_) {
      if (worker->end() == SimWorker::End::kLeft) continue;
      context_.Violate("when nothing more can happen everybody is done",
                       [&] { return worker->Where(); });
    }
  }

  uint64_t Hash() const {
    uint64_t hash = Mix(repeated_ ? 1 : 0, crashed_ ? 1 : 0);
    for (const SimServer& server : servers_) hash = Mix(hash, server.Hash());
    for (const auto& worker : workers_) hash = Mix(hash, worker->Hash());
    uint64_t pending = 0;
    for (size_t i = 0; i < context_.events.size(); ++i) pending += HashOf(context_.events[i]);
    return Mix(hash, pending);
  }
  const std::string& violation() const { return context_.violation; }

 private:
  static uint64_t HashOf(const Message& m) {
    uint64_t hash = Mix(Mix(static_cast<uint64_t>(m.kind), m.to), Mix(m.from, m.block));
    hash = Mix(hash, Mix(Mix(m.life, m.attempt), Mix(m.clock, m.incarnation)));
    hash = Mix(hash, Mix(static_cast<uint64_t>(m.code), m.version.values));
    return Mix(hash, Mix(m.duplicate ? 1 : 0, m.version.number));
  }

  // Removes replies that change nothing any more, whenever they arrive.
  void ForgetLateReplies() {
    for (size_t i = context_.events.size(); i-- > 0;) {
      const Message& message = context_.events[i];
      if (message.kind == Kind::kReply && !workers_[message.rank]->Expects(message)) {
        context_.events.Take(i);
      }
    }
  }

  // The next life is registered at once: the subject here is its messages.
  std::string Crash(uint32_t rank) {
    crashed_ = true;
    workers_[rank].emplace(rank, 10 + rank);
    workers_[rank]->Start(context_);
    ForgetLateReplies();
    return absl::StrCat("worker ", rank, " crashes and is started again");
  }

  void Deliver(const Message& event) {
    if (event.kind == Kind::kApplied) {
      return servers_[event.to - kServer0].OnApplied(context_, event);
    }
    if (event.to >= kServer0 && event.to < kCoordinator) {
      return servers_[event.to - kServer0].OnRequest(context_, event);
    }
    if (event.to == kCoordinator) return Coordinate(event);
    SimWorker& worker = *workers_[event.rank];
    if (event.kind == Kind::kReply && event.life == worker.life()) worker.OnReply(context_, event);
  }

  void Coordinate(const Message& request) {
    Message reply = request;
    reply.kind = Kind::kReply;
    std::swap(reply.from, reply.to);
    if (request.kind == Kind::kRegister) {
      reply.incarnation = context_.newest[request.rank] = 2;
    }
    context_.Send(reply);
  }

  Context context_;
  std::vector<SimServer> servers_;
  std::vector<std::optional<SimWorker>> workers_;
  bool repeated_ = false;
  bool crashed_ = false;
};

class Search {
 public:
  explicit Search(uint64_t states_max) : states_max_(states_max) {}

  // Searches depth first. False: the search may end.
  bool Visit(const SmallWorld& world) {
    if (found_.states >= states_max_) return false;
    const std::vector<Choice> choices = world.Choices();
    ++found_.states;
    found_.depth = std::max<uint64_t>(found_.depth, way_.size());
    if (std::all_of(choices.begin(), choices.end(),
                    [](const Choice& choice) { return choice.kind == Choice::kCrash; })) {
      return End(world) && Follow(world, choices);
    }
    return Follow(world, choices);
  }

  Exhausted Found(bool complete) {
    found_.complete = complete;
    return std::move(found_);
  }

 private:
  bool Follow(const SmallWorld& world, const std::vector<Choice>& choices) {
    for (const Choice& choice : choices) {
      SmallWorld next(world);
      way_.push_back(choice);
      const std::string what = next.Do(choice);
      if (!next.violation().empty()) return Broken(next, what);
      if (visited_.insert(next.Hash()).second && !Visit(next)) return false;
      way_.pop_back();
    }
    return true;
  }

  bool End(SmallWorld world) {
    ++found_.ends;
    world.CheckEnd();
    return world.violation().empty() || Broken(world, "nothing more can happen");
  }

  // Describes the path again, from its beginning.
  bool Broken(const SmallWorld& world, const std::string& last) {
    found_.violation = world.violation();
    if (first_) {
      SmallWorld again(*first_);
      for (const Choice& choice : way_) found_.trace.push_back(again.Do(choice));
    }
    found_.trace.push_back(last);
    return false;
  }

 public:
  void Begin(const SmallWorld& world) { first_.emplace(world); }

 private:
  const uint64_t states_max_;
  Exhausted found_;
  std::optional<SmallWorld> first_;
  std::vector<Choice> way_;
  std::unordered_set<uint64_t> visited_;
};

}  // namespace

Exhausted Exhaust(const Wanted& wanted, uint64_t states_max) {
  const SmallWorld world(wanted);
  Search search(states_max);
  search.Begin(world);
  const bool complete = search.Visit(world);
  return search.Found(complete);
}

}  // namespace leeway::sim
