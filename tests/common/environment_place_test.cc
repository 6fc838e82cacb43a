#include "common/command_line/environment_place.h"

#include <map>

#include "tests/catch.h"

namespace leeway::environment_place {
namespace {

using Variables = std::map<std::string, std::string>;

absl::StatusOr<EnvironmentPlace> PlaceIn(PlaceRole program, const Variables& variables) {
  return PlaceFromEnvironment(program, [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

// As genTFConfigJSONStr of Kubeflow's training operator 1.x (tensorflow.go) writes it.
std::string TfConfig(const std::string& type, const std::string& index,
                     const std::string& cluster = R"("ps":["ps-0:2222","ps-1:2223"],)"
                                                  R"("chief":["c:1"],"worker":["w-0:1","w-1:1"])") {
  return R"({"cluster":{)" + cluster + R"(},"task":{"type":")" + type + R"(","index":)" + index +
         R"(},"environment":"cloud"})";
}

struct Case {
  const char* what;
  PlaceRole program;
  Variables variables;
  std::optional<uint32_t> rank;
  std::string coordinator;
  std::string own_address;
};

constexpr PlaceRole kServer = PlaceRole::kServer, kWorker = PlaceRole::kWorker;

const Case kCases[] = {
    {"nothing", kWorker, {}, {}, "", ""},
    {"empty variables",
     kWorker,
     {{"LEEWAY_RANK", ""}, {"RANK", ""}, {"TF_CONFIG", ""}},
     {},
     "",
     ""},
    {"Leeway's own",
     kServer,
     {{"LEEWAY_RANK", "2"}, {"LEEWAY_COORDINATOR", "s-0:1"}, {"LEEWAY_ADVERTISE", "s-2:1"}},
     2,
     "s-0:1",
     "s-2:1"},
    {"its own before all others",
     kWorker,
     {{"LEEWAY_RANK", "7"}, {"JOB_COMPLETION_INDEX", "0"}, {"VC_TASK_INDEX", "1"}, {"RANK", "2"}},
     7,
     "",
     ""},
    {"an Indexed Job's", kWorker, {{"JOB_COMPLETION_INDEX", "3"}, {"RANK", "5"}}, 3, "", ""},
    {"an index of Kubernetes', the coordinator of TF_CONFIG",
     kWorker,
     {{"JOB_COMPLETION_INDEX", "3"}, {"TF_CONFIG", TfConfig("worker", "0")}},
     3,
     "ps-0:2222",
     ""},
    {"TF_CONFIG, first server",
     kServer,
     {{"TF_CONFIG", TfConfig("ps", "0")}},
     0,
     "ps-0:2222",
     "ps-0:2222"},
    {"TF_CONFIG, second server",
     kServer,
     {{"TF_CONFIG", TfConfig("ps", "1")}},
     1,
     "ps-0:2222",
     "ps-1:2223"},
    {"TF_CONFIG, chief", kWorker, {{"TF_CONFIG", TfConfig("chief", "0")}}, 0, "ps-0:2222", ""},
    {"TF_CONFIG, a worker after the chief",
     kWorker,
     {{"TF_CONFIG", TfConfig("worker", "1")}},
     2,
     "ps-0:2222",
     ""},
    {"TF_CONFIG, a worker without a chief, index as text",
     kWorker,
     {{"TF_CONFIG", TfConfig("worker", R"("1")", R"("ps":["p:1"],"worker":["a:1","b:1"])")}},
     1,
     "p:1",
     ""},
    {"Volcano", kServer, {{"VC_TASK_INDEX", "1"}}, 1, "", ""},
    {"torchrun", kWorker, {{"RANK", "6"}, {"WORLD_SIZE", "8"}}, 6, "", ""},
    {"torchrun knows no servers", kServer, {{"RANK", "6"}}, {}, "", ""},
};

TEST_CASE("a process finds its place in what orchestrators say") {
  for (const Case& each : kCases) {
    INFO(each.what);
    const auto place = PlaceIn(each.program, each.variables);
    REQUIRE(place.ok());
    CHECK(place->rank == each.rank);
    CHECK(place->coordinator == each.coordinator);
    CHECK(place->own_address == each.own_address);
  }
}

struct Mistake {
  PlaceRole program;
  Variables variables;
  const char* names;
};

const Mistake kMistakes[] = {
    {kWorker, {{"LEEWAY_RANK", "-1"}}, "LEEWAY_RANK: '-1'"},
    {kWorker, {{"LEEWAY_RANK", "4294967296"}}, "LEEWAY_RANK"},
    {kWorker, {{"LEEWAY_RANK", "one\n"}}, "LEEWAY_RANK: 'one\\n'"},
    {kWorker, {{"LEEWAY_COORDINATOR", "host"}}, "LEEWAY_COORDINATOR"},
    {kServer, {{"LEEWAY_ADVERTISE", "host:0"}}, "LEEWAY_ADVERTISE"},
    {kServer, {{"LEEWAY_ROLE", "worker"}}, "LEEWAY_ROLE: makes this process a 'worker'"},
    {kWorker, {{"LEEWAY_ROLE", "ps"}}, "LEEWAY_ROLE"},
    {kWorker, {{"JOB_COMPLETION_INDEX", "1.5"}}, "JOB_COMPLETION_INDEX"},
    {kWorker, {{"VC_TASK_INDEX", "x"}}, "VC_TASK_INDEX"},
    {kWorker, {{"RANK", "x"}}, "RANK"},
    {kWorker, {{"TF_CONFIG", "{"}}, "TF_CONFIG: is not a JSON object"},
    {kWorker, {{"TF_CONFIG", "[]"}}, "TF_CONFIG: is not a JSON object"},
    {kWorker, {{"TF_CONFIG", "{}"}}, "TF_CONFIG: must have task.type"},
    {kWorker, {{"TF_CONFIG", R"({"task":{"type":1,"index":0},"cluster":{}})"}}, "TF_CONFIG"},
    {kWorker, {{"TF_CONFIG", R"({"task":{"type":"worker","index":0},"cluster":[]})"}}, "TF_CONFIG"},
    {kWorker, {{"TF_CONFIG", R"({"task":7,"cluster":{}})"}}, "TF_CONFIG"},
    {kWorker, {{"TF_CONFIG", TfConfig("worker", "{}")}}, "TF_CONFIG, task.index"},
    {kWorker, {{"TF_CONFIG", TfConfig("worker", "-3")}}, "TF_CONFIG, task.index"},
    {kWorker, {{"TF_CONFIG", TfConfig("worker", "0", R"("ps":[])")}}, "cluster.ps[0]: is missing"},
    {kWorker, {{"TF_CONFIG", TfConfig("worker", "0", R"("ps":[3])")}}, "cluster.ps[0]"},
    {kWorker, {{"TF_CONFIG", TfConfig("worker", "0", R"("ps":["host"])")}}, "cluster.ps[0]"},
    {kServer, {{"TF_CONFIG", TfConfig("ps", "2")}}, "cluster.ps[2]: is missing"},
    {kServer, {{"TF_CONFIG", TfConfig("worker", "0")}}, "makes this process a 'worker'"},
    {kWorker, {{"TF_CONFIG", TfConfig("evaluator", "0")}}, "makes this process a 'evaluator'"},
};

TEST_CASE("what an orchestrator says wrongly is named") {
  for (const Mistake& each : kMistakes) {
    INFO(each.names);
    const auto place = PlaceIn(each.program, each.variables);
    REQUIRE(absl::IsInvalidArgument(place.status()));
    CHECK_THAT(std::string(place.status().message()), Catch::Contains(each.names));
  }
}

}  // namespace
}  // namespace leeway::environment_place
