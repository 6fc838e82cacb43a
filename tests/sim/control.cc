#include "tests/sim/control.h"

#include "absl/strings/str_cat.h"
#include "server/coordinator/core/membership.h"

namespace leeway::sim {
namespace {

constexpr Micros kCommandAttempt = 5000;

}  // namespace

void SimLink::Add(Context& context, NodeId server, Message command) {
  command.sequence = ++last_;
  waiting_.push_back(command);
  if (waiting_.size() == 1) SendFront(context, server);
}

void SimLink::SendFront(Context& context, NodeId server) {
  sent_ = context.now;
  Message command = waiting_.front();
  command.kind = Kind::kCommand;
  command.from = kCoordinator;
  command.to = server;
  command.boot = boot_;
  context.Send(command);
}

bool SimLink::OnDone(Context& context, NodeId server, uint32_t sequence) {
  if (waiting_.empty() || waiting_.front().sequence != sequence) return false;
  waiting_.pop_front();
  if (!waiting_.empty()) SendFront(context, server);
  return true;
}

void SimLink::OnTick(Context& context, NodeId server) {
  if (!waiting_.empty() && context.now - sent_ >= kCommandAttempt) SendFront(context, server);
}

void SimControl::Tell(Context& context, uint32_t server, const Message& command) {
  links_[server].Add(context, static_cast<NodeId>(kServer0 + server), command);
}

void SimControl::TellLive(Context& context, uint32_t rank, bool live) {
  Message command;
  command.order = Order::kSetLive;
  command.rank = static_cast<uint8_t>(rank);
  command.flag = live;
  for (uint32_t server = 0; server < context.shape.servers; ++server) {
    Tell(context, server, command);
  }
}

bool SimControl::Done(Context& context, const Message& message) {
  return links_[message.from - kServer0].OnDone(context, message.from, message.sequence);
}

void SimControl::TickLinks(Context& context) {
  for (uint32_t server = 0; server < context.shape.servers; ++server) {
    links_[server].OnTick(context, static_cast<NodeId>(kServer0 + server));
  }
}

void SimControl::ScheduleTick(Context& context) {
  Message timer;
  timer.kind = Kind::kCoordinatorTick;
  context.After(kCoordinator, kCoordinatorTickEvery, timer);
}

void SimControl::CheckLife(Context& context, uint32_t rank, uint64_t incarnation, uint32_t life) {
  const auto known = lives_.try_emplace({rank, incarnation}, life).first->second;
  if (known == life) return;
  context.Violate("no two lives of a rank share an incarnation", [&] {
    return absl::StrCat("worker ", rank, ": lives ", known, " and ", life, " are both incarnation ",
                        incarnation);
  });
}

namespace {

class LightControl : public SimControl {
 public:
  explicit LightControl(Context& context)
      : ranks_(context.shape.workers, 0, std::chrono::microseconds(kLease)) {
    live_.fill(true);
    ScheduleTick(context);
  }

  void OnMessage(Context& context, const Message& message) override {
    switch (message.kind) {
      case Kind::kRegister:
        return Register(context, message);
      case Kind::kHeartbeat:
      case Kind::kLeave:
        return FromWorker(context, message);
      case Kind::kCommandDone:
        Done(context, message);
        return;
      default:
        return;
    }
  }

  void OnTick(Context& context) override {
    const Time now = context.LocalTime(kCoordinator);
    // Like CoordinatorCore::Tick: while this process stood still it could hear nobody.
    if (now - last_tick_ > std::chrono::microseconds(kLease / 2)) ranks_.Forgive(now);
    last_tick_ = now;
    if (context.bug != Bug::kNeverExpire) {
      for (const uint32_t rank : ranks_.Expire(now)) SetLive(context, rank, false);
    }
    TickLinks(context);
    ScheduleTick(context);
  }

  bool over() const override { return true; }
  std::string Where(Context&) const override {
    std::string text = "membership:";
    for (uint32_t r = 0; r < ranks_.size(); ++r) {
      absl::StrAppend(&text, " ", r, " ", RankStateName(ranks_[r].state));
    }
    return text;
  }

 private:
  void Register(Context& context, const Message& message) {
    const Time now = context.LocalTime(kCoordinator);
    const uint32_t rank = message.rank;
    const auto claimed = ranks_.Claim(rank, {"", message.life, message.life}, true, now);
    if (!claimed.ok()) return context.Send(ReplyTo(message, claimed.status().code()));
    context.counts.lives += claimed->new_life ? 1 : 0;
    context.newest[rank] = ranks_[rank].incarnation;
    if (!claimed->new_life) ranks_.Seen(rank, now);
    SetLive(context, rank, true);
    Message reply = ReplyTo(message, absl::StatusCode::kOk);
    reply.incarnation = ranks_[rank].incarnation;
    if (context.bug == Bug::kSameIncarnation && reply.incarnation > 1) --reply.incarnation;
    CheckLife(context, rank, reply.incarnation, message.life);
    context.Send(reply);
  }

  void FromWorker(Context& context, const Message& message) {
    const Time now = context.LocalTime(kCoordinator);
    const uint32_t rank = message.rank;
    const absl::Status known = ranks_.Check(rank, message.incarnation);
    if (known.ok() && message.incarnation != context.newest[rank]) {
      context.Violate("nobody fenced is heard",
                      [&] { return absl::StrCat("the coordinator heard ", Describe(message)); });
    }
    if (known.ok() && !ranks_[rank].left()) {
      if (message.kind == Kind::kLeave) {
        ranks_.Leave(rank, message.flag ? RankState::kFinished : RankState::kLost, message.clock,
                     now);
        // In sync mode the others need nothing from a finished worker.
        if (!message.flag || !context.shape.sync()) SetLive(context, rank, false);
      } else {
        ranks_.Report(rank, message.clock);
        ranks_.Seen(rank, now);
        SetLive(context, rank, true);
      }
    }
    context.Send(ReplyTo(message, known.code()));
  }

  void SetLive(Context& context, uint32_t rank, bool live) {
    if (std::exchange(live_[rank], live) != live) TellLive(context, rank, live);
  }

  Membership ranks_;
  std::array<bool, kRanksMax> live_;
  Time last_tick_;
};

}  // namespace

std::unique_ptr<SimControl> MakeLightControl(Context& context) {
  return std::make_unique<LightControl>(context);
}

}  // namespace leeway::sim
