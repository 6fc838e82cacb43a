#include "common/command_line/environment_place.h"

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "common/printable.h"
#include "common/status.h"

namespace leeway {
namespace {

using Json = nlohmann::json;

// Fills the unset fields of `place` from `more`.
void Complete(EnvironmentPlace& place, const EnvironmentPlace& more) {
  if (!place.rank) place.rank = more.rank;
  if (place.coordinator.empty()) place.coordinator = more.coordinator;
  if (place.own_address.empty()) place.own_address = more.own_address;
}

class Reader {
 public:
  Reader(PlaceRole program, const EnvironmentLookup& look_up)
      : program_(program), look_up_(look_up) {}

  absl::StatusOr<EnvironmentPlace> Own() const {
    if (const std::string role = Text("LEEWAY_ROLE"); !role.empty()) {
      RETURN_IF_ERROR(CheckRole("LEEWAY_ROLE", role, "server", "worker"));
    }
    EnvironmentPlace place;
    ASSIGN_OR_RETURN(place.coordinator, Address("LEEWAY_COORDINATOR"));
    ASSIGN_OR_RETURN(place.own_address, Address("LEEWAY_ADVERTISE"));
    ASSIGN_OR_RETURN(place.rank, Number("LEEWAY_RANK"));
    return place;
  }

  absl::StatusOr<EnvironmentPlace> Index(const std::string& name) const {
    ASSIGN_OR_RETURN(const auto rank, Number(name));
    return EnvironmentPlace{.rank = rank};
  }

  // https://www.tensorflow.org/guide/distributed_training, "TF_CONFIG". Kubeflow's training operator
  // writes it in pkg/controller.v1/tensorflow/tensorflow.go.
  absl::StatusOr<EnvironmentPlace> TfConfig() const {
    const std::string text = Text("TF_CONFIG");
    if (text.empty()) return EnvironmentPlace();
    const Json config = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!config.is_object()) return absl::InvalidArgumentError("TF_CONFIG: is not a JSON object");
    const Json none = Json::object();
    const Json& task = config.contains("task") ? config.at("task") : none;
    const Json& cluster = config.contains("cluster") ? config.at("cluster") : none;
    const bool whole = task.contains("type") && task.at("type").is_string() &&
                       task.contains("index") && cluster.is_object();
    if (!whole) {
      return absl::InvalidArgumentError("TF_CONFIG: must have task.type, task.index and cluster");
    }
    const std::string type = task.at("type").get<std::string>();
    const bool chief = type == "chief" || type == "master";
    RETURN_IF_ERROR(CheckRole("TF_CONFIG, task.type", chief ? "worker" : type, "ps", "worker"));
    EnvironmentPlace place;
    ASSIGN_OR_RETURN(place.rank, IndexOf(task.at("index")));
    ASSIGN_OR_RETURN(place.coordinator, AddressOf(cluster, "ps", 0));
    if (program_ == PlaceRole::kServer) {
      ASSIGN_OR_RETURN(place.own_address, AddressOf(cluster, "ps", *place.rank));
    } else if (!chief) {
      *place.rank += CountOf(cluster, "chief") + CountOf(cluster, "master");
    }
    return place;
  }

 private:
  std::string Text(const std::string& name) const { return look_up_(name).value_or(""); }

  absl::StatusOr<std::string> Address(const std::string& name) const {
    const std::string address = Text(name);
    if (!address.empty()) RETURN_IF_ERROR(Annotate(CheckAddressToReach(address), name));
    return address;
  }

  absl::StatusOr<std::optional<uint32_t>> Number(const std::string& name) const {
    const std::string text = Text(name);
    if (text.empty()) return std::nullopt;
    uint32_t number = 0;
    if (absl::SimpleAtoi(text, &number) && number <= kRankMax) return number;
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": '", Printable(text), "' is not a number from 0 to ", kRankMax));
  }

  absl::Status CheckRole(const std::string& from, const std::string& role, const char* server,
                         const char* worker) const {
    const bool serves = program_ == PlaceRole::kServer;
    if (role == (serves ? server : worker)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(from, ": makes this process a '", Printable(role), "', but this is leeway-",
                     serves ? "server, which has the role '" : "worker, which has the role '",
                     serves ? server : worker, "'"));
  }

  static absl::StatusOr<uint32_t> IndexOf(const Json& index) {
    uint32_t number = 0;
    const std::string text = index.is_string() ? index.get<std::string>() : index.dump();
    if (absl::SimpleAtoi(text, &number) && number <= kRankMax) return number;
    return absl::InvalidArgumentError(
        absl::StrCat("TF_CONFIG, task.index: '", Printable(text), "' is not a number"));
  }

  static uint32_t CountOf(const Json& cluster, const char* type) {
    return cluster.contains(type) ? static_cast<uint32_t>(cluster.at(type).size()) : 0;
  }

  static absl::StatusOr<std::string> AddressOf(const Json& cluster, const char* type,
                                               uint32_t index) {
    const bool there = cluster.contains(type) && cluster.at(type).is_array() &&
                       index < cluster.at(type).size() && cluster.at(type).at(index).is_string();
    const std::string field = absl::StrCat("TF_CONFIG, cluster.", type, "[", index, "]");
    if (!there) return absl::InvalidArgumentError(absl::StrCat(field, ": is missing"));
    const std::string address = cluster.at(type).at(index).get<std::string>();
    RETURN_IF_ERROR(Annotate(CheckAddressToReach(address), field));
    return address;
  }

  // The largest rank that is accepted. No job has as many workers or servers.
  static constexpr uint32_t kRankMax = 1'000'000;

  const PlaceRole program_;
  const EnvironmentLookup& look_up_;
};

}  // namespace

absl::StatusOr<EnvironmentPlace> PlaceFromEnvironment(PlaceRole program,
                                                      const EnvironmentLookup& look_up) {
  const Reader reader(program, look_up);
  ASSIGN_OR_RETURN(EnvironmentPlace place, reader.Own());
  if (!place.rank) {
    ASSIGN_OR_RETURN(const EnvironmentPlace more, reader.Index("JOB_COMPLETION_INDEX"));
    Complete(place, more);
  }
  if (!place.rank || place.coordinator.empty()) {
    ASSIGN_OR_RETURN(const EnvironmentPlace more, reader.TfConfig());
    Complete(place, more);
  }
  if (!place.rank) {
    ASSIGN_OR_RETURN(const EnvironmentPlace more, reader.Index("VC_TASK_INDEX"));
    Complete(place, more);
  }
  if (!place.rank && program == PlaceRole::kWorker) {
    ASSIGN_OR_RETURN(const EnvironmentPlace more, reader.Index("RANK"));
    Complete(place, more);
  }
  return place;
}

}  // namespace leeway
