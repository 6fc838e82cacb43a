// leeway_sim: runs many schedules of a simulated job, or prints one of them line by line.
#include <cstdio>
#include <map>
#include <string>

#include <CLI/CLI.hpp>

#include "tests/sim/exhaustive.h"
#include "tests/sim/world.h"

namespace leeway::sim {
namespace {

struct Command {
  uint64_t seed = 0;
  uint64_t schedules = 10'000;
  std::string mode = "any";
  std::string bug = "none";
  bool trace = false;
  bool whole = false;
  bool replicas = false;
  bool sets = false;
  bool resizes = false;
  bool exhaustive = false;
  uint64_t states = 20'000'000;
};

void Print(const Counts& sum) {
  for (const Counts::Each& each : Counts::All()) {
    std::printf("  %-24s %llu\n", each.what, static_cast<unsigned long long>(sum.*each.count));
  }
}

int Trace(uint64_t seed, const Wanted& wanted) {
  const Shape shape = DrawShape(seed, wanted);
  std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed),
              Describe(shape, DrawFaults(seed, shape)).c_str());
  World world(seed, wanted, stdout);
  const std::string violation = world.Run();
  std::printf("%s\n", violation.empty() ? "no promise broken" : violation.c_str());
  return violation.empty() ? 0 : 1;
}

int RunMany(const Command& command, const Wanted& wanted) {
  Counts sum;
  // A hash over the outcomes of all schedules, which does not depend on the machine.
  uint64_t outcomes = 0;
  const std::clock_t began = std::clock();
  for (uint64_t i = 0; i < command.schedules; ++i) {
    World world(command.seed + i, wanted);
    const std::string& violation = world.Run();
    sum += world.context().counts;
    outcomes = Mix(outcomes, static_cast<uint64_t>(world.context().now));
    for (const Counts::Each& each : Counts::All()) {
      outcomes = Mix(outcomes, world.context().counts.*each.count);
    }
    if (violation.empty()) continue;
    std::printf("schedule %llu, seed %llu: %s\n", static_cast<unsigned long long>(i + 1),
                static_cast<unsigned long long>(command.seed + i), violation.c_str());
    Trace(command.seed + i, wanted);
    return 1;
  }
  const double seconds = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  std::printf("%llu schedules in %.1f s of processor time, %.0f a second, no promise broken\n",
              static_cast<unsigned long long>(command.schedules), seconds,
              static_cast<double>(command.schedules) / seconds);
  std::printf("  outcomes %016llx\n", static_cast<unsigned long long>(outcomes));
  Print(sum);
  return 0;
}

int Exhaust(const Command& command, const Wanted& wanted) {
  const Exhausted all = Exhaust(wanted, command.states);
  std::printf("%llu states, %llu ends, depth %llu%s\n", static_cast<unsigned long long>(all.states),
              static_cast<unsigned long long>(all.ends), static_cast<unsigned long long>(all.depth),
              all.complete ? "" : ", and more than the limit");
  for (const std::string& line : all.trace) std::printf("%s\n", line.c_str());
  std::printf("%s\n", all.violation.empty() ? "no promise broken" : all.violation.c_str());
  return all.violation.empty() ? 0 : 1;
}

int Main(int argc, char** argv) {
  CLI::App app("Simulates jobs from seeds, and checks what is promised.");
  Command command;
  app.add_option("--seed", command.seed, "The first schedule's seed");
  app.add_option("--schedules", command.schedules, "How many");
  app.add_option("--mode", command.mode, "any, sync, bounded, async")
      ->check(CLI::IsMember({"any", "sync", "bounded", "async"}));
  app.add_option("--bug", command.bug, "Breaks a rule, so that the simulator finds it");
  app.add_flag("--trace", command.trace, "One schedule, a line an event");
  app.add_flag("--whole", command.whole, "With the whole coordinator, not its membership alone");
  app.add_flag("--replicas", command.replicas, "--whole, with a replica of each block");
  app.add_flag("--sets", command.sets,
               "--whole, with committed sets; also together with --replicas");
  app.add_flag("--resizes", command.resizes,
               "--whole, and the number of servers changes; also together with --replicas, --sets");
  app.add_flag("--exhaustive", command.exhaustive, "Every order of events of a small world");
  app.add_option("--states", command.states, "At most so many, of --exhaustive");
  CLI11_PARSE(app, argc, argv);

  Wanted wanted;
  const auto bug = BugNamed(command.bug);
  if (!bug) {
    std::printf("--bug is one of:\n");
    for (uint32_t i = 0; i < kBugs; ++i) {
      const BugInfo& info = InfoOf(static_cast<Bug>(i));
      std::printf("  %-20s %s\n", info.name, info.what);
    }
    return 2;
  }
  wanted.bug = *bug;
  const Wanted& where = InfoOf(*bug).where;
  wanted.sets = command.sets || where.sets;
  wanted.replicas = command.replicas || where.replicas;
  wanted.resizes = command.resizes || where.resizes;
  wanted.whole = command.whole || where.whole || wanted.replicas || wanted.sets || wanted.resizes;
  const std::map<std::string, Consistency> modes = {{"sync", Consistency::kSync},
                                                    {"bounded", Consistency::kBounded},
                                                    {"async", Consistency::kAsync}};
  if (modes.contains(command.mode)) wanted.mode = modes.at(command.mode);
  if (command.exhaustive) return Exhaust(command, wanted);
  return command.trace ? Trace(command.seed, wanted) : RunMany(command, wanted);
}

}  // namespace
}  // namespace leeway::sim

int main(int argc, char** argv) { return leeway::sim::Main(argc, argv); }
