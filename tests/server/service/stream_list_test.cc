// Which worker has which streams, and which of them are ended.
#include "server/service/stream_list.h"

#include <memory>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace leeway::stream_list {
namespace {

Time At(int seconds) { return Time(std::chrono::seconds(seconds)); }

class FakeStream : public StreamList::Stream {
 public:
  explicit FakeStream(Time heard) : heard_at(heard) {}
  void TakeBackUnread(Time) override { ++ticks; }
  void End() override { ended = true; }
  Time last_heard() const override { return heard_at; }

  Time heard_at;
  int ticks = 0;
  bool ended = false;
};

struct Rig {
  std::shared_ptr<FakeStream> Begin(int seconds) {
    auto stream = std::make_shared<FakeStream>(At(seconds));
    list.Add(stream);
    all.push_back(stream);
    return stream;
  }
  std::shared_ptr<FakeStream> Of(uint32_t rank, uint64_t incarnation, int seconds) {
    auto stream = Begin(seconds);
    list.Belongs(rank, incarnation, stream);
    return stream;
  }
  // Returns the streams that have been ended, in the order in which they began.
  std::string Ended() const {
    std::string ended;
    for (const auto& stream : all) ended += stream->ended ? 'x' : '.';
    return ended;
  }

  StreamList list;
  std::vector<std::shared_ptr<FakeStream>> all;
};

TEST_CASE("of a worker that has one too many the stream ends that was heard of longest ago") {
  Rig rig;
  const auto busy = rig.Of(7, 1, 1);
  rig.list.SetLimits({.of_rank = 2, .of_servers = 0});
  rig.Of(7, 1, 2);
  rig.Of(8, 1, 0);
  busy->heard_at = At(3);
  rig.Of(7, 1, 4);
  CHECK(rig.Ended() == ".x..");
  // An ended stream takes no place, whether it was ended or has ended by itself.
  rig.list.Remove(busy.get());
  rig.Of(7, 1, 5);
  CHECK(rig.Ended() == ".x...");
  CHECK(rig.list.size() == 3);
  rig.list.Tick(At(6));
  CHECK(busy->ticks == 0);
  CHECK(rig.all[2]->ticks == 1);
}

TEST_CASE("the streams of a life end when its successor attaches, those of the successor do not") {
  Rig rig;
  rig.list.SetLimits({.of_rank = 2, .of_servers = 0});
  rig.Of(7, 1, 1);
  rig.Of(7, 2, 2);
  rig.Of(8, 1, 3);
  rig.list.OnAttach(7, 2);
  CHECK(rig.Ended() == "x..");
  rig.list.OnAttach(7, 1);
  rig.list.OnAttach(7, 2);
  CHECK(rig.Ended() == "x..");
}

TEST_CASE("who was replaced and wakes takes no place of its successor's") {
  Rig rig;
  rig.list.SetLimits({.of_rank = 1, .of_servers = 0});
  rig.list.OnAttach(7, 2);
  const auto live = rig.Of(7, 2, 1);
  const auto woken = rig.Of(7, 1, 2);
  CHECK(rig.Ended() == "..");
  // The worker is told so as long as it asks.
  rig.list.Tick(At(100));
  CHECK(rig.Ended() == "..");
  rig.list.Tick(At(123));
  CHECK(rig.Ended() == ".x");
}

TEST_CASE("a stream that says nothing is ended, one whose owner is known may be silent") {
  Rig rig;
  rig.Begin(0);
  rig.Of(7, 1, 0);
  rig.list.BelongsToServer(rig.Begin(0));
  rig.Begin(10);
  rig.list.Tick(At(120));
  CHECK(rig.Ended() == "....");
  rig.list.Tick(At(121));
  CHECK(rig.Ended() == "x...");
}

TEST_CASE("there are so many streams of nobody's, one more ends the one silent for longest") {
  Rig rig;
  for (int i = 0; i < 4096; ++i) rig.Begin(i + 1);
  CHECK(rig.Ended().find('x') == std::string::npos);
  rig.all[0]->heard_at = At(5000);
  rig.Begin(5001);
  CHECK(rig.Ended().find('x') == 1);
  CHECK(rig.list.size() == 4096);
}

TEST_CASE("other servers have a stream for each shard") {
  Rig rig;
  rig.list.SetLimits({.of_rank = 1, .of_servers = 2});
  for (int i = 1; i <= 3; ++i) rig.list.BelongsToServer(rig.Begin(i));
  CHECK(rig.Ended() == "x..");
}

}  // namespace
}  // namespace leeway::stream_list
