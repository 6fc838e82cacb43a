#include "config/resolve.h"

#include <memory>
#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "config/decode.h"
#include "config/external.h"
#include "config/model/named_models.h"
#include "config/problems.h"
#include "config/schema.h"
#include "config/topology.h"
#include "config/yaml_tree.h"

namespace leeway {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

// Sets the field to its default. Readers get the same value from an unset field.
void WriteDefault(const FieldDescriptor& field, Message& message) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(&message, &field, field.default_value_bool());
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.SetDouble(&message, &field, field.default_value_double());
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.SetInt32(&message, &field, field.default_value_int32());
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.SetUInt32(&message, &field, field.default_value_uint32());
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.SetUInt64(&message, &field, field.default_value_uint64());
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.SetString(&message, &field, field.default_value_string());
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.SetEnum(&message, &field, field.default_value_enum());
    default:
      return;
  }
}

absl::Status WriteAbsent(const FieldDescriptor& field, Message& message) {
  const auto source =
      std::make_shared<const Source>(Source{std::string(field.full_name()), true, ""});
  ASSIGN_OR_RETURN(const YamlNode node, ReadYaml(RulesOf(field).absent(), source));
  Problems problems;
  Decode(node, "", *message.GetReflection()->MutableMessage(&message, &field), problems);
  if (problems.empty()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("a default of the schema is wrong: ", problems.ToStatus().message()));
}

absl::Status WriteDefaults(Message& message) {
  const Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (field.is_repeated()) {
      const int size = is_message ? reflection.FieldSize(message, &field) : 0;
      for (int k = 0; k < size; ++k) {
        RETURN_IF_ERROR(WriteDefaults(*reflection.MutableRepeatedMessage(&message, &field, k)));
      }
      continue;
    }
    const bool given = reflection.HasField(message, &field);
    if (!given && field.has_default_value()) WriteDefault(field, message);
    if (!given && RulesOf(field).has_absent()) RETURN_IF_ERROR(WriteAbsent(field, message));
    if (is_message && reflection.HasField(message, &field)) {
      RETURN_IF_ERROR(WriteDefaults(*reflection.MutableMessage(&message, &field)));
    }
  }
  return absl::OkStatus();
}

// Writes the default stride of all pools. It uses reflection, because layers contain layers.
void ResolvePools(Message& message) {
  if (message.GetDescriptor() == v1::Pool::descriptor()) {
    auto& pool = static_cast<v1::Pool&>(message);
    if (!pool.has_stride()) pool.set_stride(pool.size());
    return;
  }
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> set;
  reflection.ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      ResolvePools(*reflection.MutableMessage(&message, field));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      ResolvePools(*reflection.MutableRepeatedMessage(&message, field, i));
    }
  }
}

void ResolveElastic(v1::TrainingJob& job) {
  v1::ElasticExchange& elastic = *job.mutable_exchange()->mutable_elastic();
  if (!elastic.has_optimizer() && job.has_update()) {
    elastic.mutable_optimizer()->Swap(job.mutable_update());
    job.clear_update();
  }
  if (!elastic.has_alpha()) elastic.set_alpha(0.9 / job.workers().count());
}

// Gives a test table without categories the categories of the training table.
void ResolveTables(v1::Data& data) {
  const bool tables = data.train().has_csv() && data.test().has_csv();
  if (tables && data.test().csv().categories().empty()) {
    *data.mutable_test()->mutable_csv()->mutable_categories() = data.train().csv().categories();
  }
  if (data.train().csv().has_label()) data.mutable_train()->mutable_csv()->clear_label_column();
  if (data.test().csv().has_label()) data.mutable_test()->mutable_csv()->clear_label_column();
}

// Removes the number of servers, which has no effect if the workers are the servers.
void ResolveNoServers(v1::Servers& servers) {
  servers.set_count(1);
  servers.set_shards(0);
  servers.set_max(0);
  servers.set_min(0);
}

// Writes the defaults that differ from the schema's in a gossip job.
void ResolveGossip(v1::TrainingJob& job) {
  if (job.exchange().has_delta()) {
    v1::DeltaExchange& delta = *job.mutable_exchange()->mutable_delta();
    if (!delta.has_weighting()) delta.set_weighting(v1::WEIGHTING_EQUAL);
    if (!job.has_update()) *job.mutable_update() = UpdateOfGossip();
  }
  v1::Servers& servers = *job.mutable_servers();
  if (!servers.has_replicas() && job.workers().count() > 1) servers.set_replicas(2);
}

// Removes what has no effect, so that another mode or graph needs no other change. Removes usual
// values, so that a change of topology.type suffices.
void ClearIdleOrUsual(v1::TrainingJob& job) {
  const v1::Gossip usual;
  v1::Gossip& gossip = *job.mutable_topology()->mutable_gossip();
  const bool async = job.consistency().mode() == v1::CONSISTENCY_MODE_ASYNC;
  const bool groups = !async && gossip.graph() == v1::GOSSIP_GRAPH_RANDOM;
  if (!groups || gossip.group() == usual.group()) gossip.clear_group();
  if (async || gossip.graph() == usual.graph()) gossip.clear_graph();
  if (gossip.mean_every() == usual.mean_every()) gossip.clear_mean_every();
}

// The usual algorithm stays absent, so that a change of topology.type suffices.
void ClearUsualAlgorithm(v1::AllReduce& all_reduce) {
  if (all_reduce.algorithm() == v1::ALL_REDUCE_ALGORITHM_DIRECT) all_reduce.clear_algorithm();
}

// Clears keys without effect, and types with their usual value, so that a job has the same YAML and
// digest as in versions without external jobs.
void ClearIdle(v1::TrainingJob& job) {
  v1::Model& model = *job.mutable_model();
  v1::Data& data = *job.mutable_data();
  if (!IsExternal(job)) {
    model.clear_type();
    data.clear_type();
    return;
  }
  model.clear_label_smoothing();
  data.clear_partition();
  if (data.assignment() == v1::ASSIGNMENT_STATIC) data.clear_assignment();
  data.clear_loader_threads();
  data.clear_prefetch();
  job.mutable_workers()->clear_device();
  job.mutable_workers()->clear_precision();
  job.mutable_workers()->clear_per_host();
}

}  // namespace

absl::Status ResolveUpdate(v1::Update& update) { return WriteDefaults(update); }

v1::Update UpdateOfGossip() {
  v1::Update update;
  update.mutable_sgd();
  update.set_learning_rate(1);
  return update;
}

absl::Status ResolveJob(v1::TrainingJob& job) {
  if (IsGossip(job)) ResolveGossip(job);
  RETURN_IF_ERROR(WriteDefaults(job));
  ExpandNamedModels(*job.mutable_model());
  // Named models were replaced by their layers, which need defaults, too.
  RETURN_IF_ERROR(WriteDefaults(*job.mutable_model()));
  ResolvePools(*job.mutable_model());
  ResolveTables(*job.mutable_data());
  if (job.exchange().has_elastic()) ResolveElastic(job);
  if (job.consistency().mode() != v1::CONSISTENCY_MODE_BOUNDED) {
    job.mutable_consistency()->clear_staleness();
  }
  if (WorkersHoldBlocks(job)) {
    ResolveNoServers(*job.mutable_servers());
  }
  if (job.topology().has_all_reduce()) {
    ClearUsualAlgorithm(*job.mutable_topology()->mutable_all_reduce());
  }
  if (IsGossip(job)) ClearIdleOrUsual(job);
  ClearIdle(job);
  return absl::OkStatus();
}

}  // namespace leeway
