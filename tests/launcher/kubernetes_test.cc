#include "absl/strings/str_replace.h"
#include "launcher/kubernetes/names.h"
#include "launcher/kubernetes/pod_sizes.h"
#include "launcher/kubernetes/run_manifests.h"
#include "launcher/kubernetes/template.h"
#include "launcher/kubernetes/templates.h"
#include "tests/catch.h"

namespace leeway::kubernetes {
namespace {

const TemplateValues kValues = {
    {"name", "first"}, {"port", "7100"}, {"none", ""}, {"lines", "a: 1\n\nb: 2\n"}};

std::string Filled(absl::string_view text) {
  const auto filled = FillTemplate(text, kValues);
  INFO(filled.status());
  REQUIRE(filled.ok());
  return *filled;
}

std::string WhyNot(absl::string_view text) {
  return std::string(FillTemplate(text, kValues).status().message());
}

TEST_CASE("places of a template are filled, also twice in a line") {
  CHECK(Filled("host: ${name}-0.${name}:${port}\n") == "host: first-0.first:7100\n");
  CHECK(Filled("keeps: $(RANK) $$ {x: 1}\n") == "keeps: $(RANK) $$ {x: 1}\n");
  CHECK(Filled("no line's end") == "no line's end\n");
}

TEST_CASE("lines are as far to the right as their place, and none where there are none") {
  CHECK(Filled("data:\n  @lines\nend: 1\n") == "data:\n  a: 1\n\n  b: 2\nend: 1\n");
  CHECK(Filled("data:\n  @none\nend: 1\n") == "data:\nend: 1\n");
}

TEST_CASE("conditions hold by what is not empty, and nest") {
  const std::string text =
      "@if name\n1\n@if none\n2\n@if name\n3\n@end\n@end\n@if name !none\n4\n@end\n@end\n5\n";
  CHECK(Filled(text) == "1\n4\n5\n");
  CHECK(Filled("@if !name\n1\n@end\n@if none port\n2\n@end\n") == "");
}

TEST_CASE("a template that is wrong says where") {
  CHECK(WhyNot("a: 1\nb: ${nothing}\n") == "line 2: no value nothing");
  CHECK(WhyNot("a: ${name\n") == "line 1: a ${ has no }");
  CHECK(WhyNot("@nothing\n") == "line 1: no value nothing");
  CHECK(WhyNot("@if nothing\n@end\n") == "line 1: no value nothing");
  CHECK(WhyNot("@if name\n") == "an @if has no @end");
  CHECK(WhyNot("@end\n") == "line 1: an @end has no @if");
}

TEST_CASE("every template is in the program") {
  for (const char* name : {"pod", "common", "secrets", "alerts", "jobset", "statefulset",
                           "kubeflow", "volcano", "tfjob"}) {
    INFO(name);
    CHECK_FALSE(KubernetesTemplate(name).empty());
  }
  CHECK(KubernetesTemplate("helm").empty());
}

TEST_CASE("names are those that Kubernetes takes") {
  for (const char* good : {"a", "first-2", "x9"}) CHECK(CheckHostLabel("--name", good).ok());
  for (const char* bad : {"", "2nd", "-a", "a-", "A", "a.b", "a_b", "a\n"}) {
    INFO(bad);
    CHECK(absl::IsInvalidArgument(CheckHostLabel("--name", bad)));
  }
  CHECK(CheckHostLabel("--name", std::string(63, 'a')).ok());
  CHECK(CheckHostLabel("--name", std::string(64, 'a')).message() ==
        absl::StrCat("--name ", std::string(64, 'a'),
                     ": has 64 characters, but may have at most 63: use a shorter name"));
  for (const char* good : {"data", "9a.b-c"}) CHECK(CheckObjectName("--x", good).ok());
  for (const char* bad : {"", "a..b", "a.-b", "a b", "a: b", "{a}"}) {
    INFO(bad);
    CHECK(absl::IsInvalidArgument(CheckObjectName("--x", bad)));
  }
}

TEST_CASE("files of a program have names that a ConfigMap takes as keys") {
  for (const char* good : {"train.py", "on", "123", ".env", "a..b", "A_b-c.txt"}) {
    INFO(good);
    CHECK(CheckFileName("--file", good).ok());
  }
  for (const char* bad : {"", ".", "..", "..data", "a b", "a:b", "a/b", "\xc3\xa9.py", "a\n"}) {
    INFO(bad);
    CHECK(absl::IsInvalidArgument(CheckFileName("--file", bad)));
  }
  CHECK(CheckFileName("--file", std::string(253, 'a')).ok());
  CHECK_THAT(std::string(CheckFileName("--file", std::string(254, 'a')).message()),
             Catch::Contains("has 254 characters, but may have at most 253: use a shorter name"));
}

KubernetesRun RunOf(const std::string& name, absl::string_view shape = "jobset") {
  KubernetesRun run;
  run.shape = FindShape(shape);
  run.name = name;
  run.image = run.worker_image = "leeway:1";
  run.server_memory = run.worker_memory = "1Gi";
  return run;
}

std::string Printed(const KubernetesRun& run) {
  const auto printed = RunManifests(run);
  INFO(printed.status());
  REQUIRE(printed.ok());
  return *printed;
}

TEST_CASE("a run's name leaves room for what begins with it, and is no other run's object") {
  // JobSet's label contains the coordinator's address: the name twice, and -server-0-0.
  CHECK(CheckRun(RunOf(std::string(25, 'a'))).ok());
  CHECK_THAT(std::string(CheckRun(RunOf(std::string(26, 'a'))).message()),
             Catch::Contains(
                 "has 26 characters, but may have at most 25: use a shorter name; names of pods "
                 "and labels begin with it"));
  CHECK(CheckRun(RunOf(std::string(40, 'a'), "statefulset")).ok());
  for (const char* end : {"-server", "-worker", "-job", "-program", "-run"}) {
    INFO(end);
    CHECK(
        CheckRun(RunOf(absl::StrCat("first", end))).message() ==
        absl::StrCat(
            "--name first", end,
            ": objects of a run first would have this name; choose a name that does not end with ",
            end));
  }
}

TEST_CASE("names that are words of YAML stay names") {
  KubernetesRun run = RunOf("no");
  run.space = run.queue = "on";
  run.storage_class = "true";
  run.data_claim = "123";
  run.program = {"python3", "on"};
  run.program_files = {{"on", "1"}, {"123", "2"}};
  const std::string printed = Printed(run);
  for (const char* text :
       {"\"on\": \"1\"", "\"123\": \"2\"", "name: \"no\"", "namespace: \"on\"",
        "queue-name: \"on\"", "storageClassName: \"true\"", "claimName: \"123\""}) {
    CHECK_THAT(printed, Catch::Contains(text));
  }
}

TEST_CASE("the names of Secrets leave room for what follows") {
  KubernetesRun run = RunOf("first");
  run.secrets = std::string(242, 'a');
  CHECK(CheckRun(run).ok());
  run.secrets += "a";
  CHECK(CheckRun(run).message() ==
        absl::StrCat("--secrets ", run.secrets,
                     ": has 243 characters, but may have at most 242: use a shorter name"));
}

TEST_CASE("a program's words reach it as they are") {
  KubernetesRun run = RunOf("first");
  run.program = {"python3", "s.py", "--a=$(HOME)", "$$(X)"};
  CHECK_THAT(Printed(run), Catch::Contains("\"--a=$$(HOME)\",\"$$$$(X)\""));
}

TEST_CASE("workers read a store by its Secret, and what they may reach says so") {
  KubernetesRun run = RunOf("first");
  run.data_store = "s3://bucket/data";
  CHECK_THAT(std::string(CheckRun(run).message()), Catch::Contains("--store-secret: required"));
  run.store_secret = "store";
  run.store_port = 9000;
  REQUIRE(CheckRun(run).ok());
  const std::string printed = Printed(run);
  for (const char* text :
       {"{name: LEEWAY_DATA, value: \"s3://bucket/data\"}", "secretRef: {name: \"store\"}",
        "{name: LEEWAY_DATA_CACHE, value: /var/cache/leeway}", "name: first-worker\n", "port: 9000",
        "value: \"/var/lib/leeway/first\""}) {
    CHECK_THAT(printed, Catch::Contains(text));
  }
  run.data_store.clear();
  CHECK_THAT(std::string(CheckRun(run).message()), Catch::Contains("neither --run-dir nor --data"));
}

TEST_CASE(
    "workers that hold blocks listen, prove that they may answer, and write to the run folder") {
  KubernetesRun run = RunOf("first");
  run.workers = 3;
  run.workers_hold_blocks = true;
  const std::string printed = Printed(run);
  for (const char* text :
       {"value: \"first-worker-$(LEEWAY_RANK)-0.first:7100\"", "secret: {name: leeway-peer-tls}",
        "name: first-worker\n", "policyTypes: [Ingress]\n", "minAvailable: 2 ", "cpu: \"1500m\""}) {
    CHECK_THAT(printed, Catch::Contains(text));
  }
  CHECK_THAT(printed, !Catch::Contains("leeway-worker-tls"));
  run.store = "s3://bucket/runs";
  run.store_secret = "store";
  CHECK_THAT(Printed(run), Catch::Contains("policyTypes: [Ingress, Egress]"));
  run.secrets.clear();
  CHECK_THAT(Printed(run), !Catch::Contains("-tls"));
}

TEST_CASE("every shape has a name for each worker that holds blocks") {
  for (const Shape& shape : Shapes()) {
    INFO(shape.name);
    KubernetesRun run = RunOf("first", shape.name);
    CHECK_THAT(Printed(run), !Catch::Contains("-peer-tls"));
    run.workers_hold_blocks = true;
    const std::string host = absl::StrReplaceAll(shape.worker_advertise, {{"${name}", "first"}});
    CHECK_FALSE(host.empty());
    CHECK_THAT(Printed(run), Catch::Contains(absl::StrCat("value: \"", host, ":7100\"")));
  }
}

TEST_CASE("images and quantities are those that Kubernetes takes") {
  for (const char* good :
       {"leeway", "leeway:0.2.0", "Registry.example:5000/team/leeway_x:v1-2",
        "ghcr.io/a/b@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}) {
    INFO(good);
    CHECK(CheckImage("--image", good).ok());
  }
  for (const char* bad : {"", "leeway:", "leeway 1", "a\"b", "leeway:x:y", "a/B", "x@sha256:12"}) {
    INFO(bad);
    CHECK(absl::IsInvalidArgument(CheckImage("--image", bad)));
  }
  for (const char* good : {"1", "512Mi", "10Gi", "5G"}) CHECK(CheckBytes("--storage", good).ok());
  for (const char* bad : {"", "0", "0Gi", "1.5Gi", "-1Gi", "5GB", "lots"}) {
    INFO(bad);
    CHECK(absl::IsInvalidArgument(CheckBytes("--storage", bad)));
  }
}

TEST_CASE("a drain leaves as many servers as copies need") {
  CHECK(HoldersThatStay(4, 1) == 3);
  CHECK(HoldersThatStay(4, 2) == 3);
  CHECK(HoldersThatStay(4, 3) == 2);
  CHECK(HoldersThatStay(1, 0) == 0);
  CHECK(ServerMemory(0) == "256Mi");
  CHECK(WorkerMemory(0, true) == "2816Mi");
}

}  // namespace
}  // namespace leeway::kubernetes
