#include "config/external.h"

#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "common/job_key.h"

namespace leeway {
namespace {

using Faults = std::vector<Fault>;

bool HasExternalData(const v1::TrainingJob& job) {
  return job.data().type() == v1::DATA_TYPE_EXTERNAL;
}

void CheckPair(const v1::TrainingJob& job, Faults& faults) {
  if (!job.has_model() || !job.has_data() || IsExternal(job) == HasExternalData(job)) return;
  faults.push_back(
      {"data.type",
       IsExternal(job)
           ? "must be external with model.type external: the program that trains reads its own "
             "examples, such as data: {type: external, batch_size: 64, examples: 60000}"
           : "external goes with model.type external only: Leeway's workers read files"});
}

void CheckLayers(const v1::TrainingJob& job, Faults& faults) {
  if (job.has_model() && job.model().layers().empty()) {
    faults.push_back({"model.layers", "required: a list of at least 1 element"});
  }
  if (job.has_model() && !job.model().has_loss()) {
    faults.push_back({"model.loss", "required key is missing"});
  }
  if (job.exchange().has_delta() && !job.exchange().delta().has_optimizer()) {
    faults.push_back({"exchange.optimizer", "required key is missing"});
  }
}

void CheckHasNoFiles(const v1::Data& data, Faults& faults) {
  if (!data.has_train()) faults.push_back({"data.train", "required key is missing"});
  if (!data.has_examples()) return;
  faults.push_back({"data.examples",
                    "goes with data.type external: Leeway counts the examples of files itself"});
}

// A key that has no effect in this job.
struct Idle {
  bool given;
  const char* key;
  const char* why;
};

void Refuse(std::initializer_list<Idle> keys, Faults& faults) {
  for (const Idle& idle : keys) {
    if (idle.given) faults.push_back({idle.key, absl::StrCat(idle.why, "; remove it")});
  }
}

void CheckExternalModel(const v1::TrainingJob& job, Faults& faults) {
  const v1::Model& model = job.model();
  constexpr char kOwn[] = "an external model is the program's own";
  Refuse(
      {{!model.layers().empty(), "model.layers", kOwn},
       {model.has_loss(), "model.loss", "the program computes its own loss"},
       {model.label_smoothing() != 0, "model.label_smoothing", "the program computes its own loss"},
       {model.has_initial(), "model.initial",
        "training starts from the program's own weights; the program may load the file"},
       {!model.plugins().empty() && !job.update().has_custom(), "model.plugins",
        "an external model has no layers, so only a plugin's update rule goes with it"},
       {model.has_custom_loss(), "model.custom_loss", "the program computes its own loss"}},
      faults);
}

void CheckExternalData(const v1::Data& data, Faults& faults) {
  const v1::Data& absent = v1::Data::default_instance();
  constexpr char kReads[] = "the program reads its own examples";
  Refuse({{data.has_train(), "data.train", kReads},
          {data.has_test(), "data.test", kReads},
          {data.has_holdout(), "data.holdout", kReads},
          {data.has_partition() && !data.partition().has_iid(), "data.partition", kReads},
          {data.has_normalize(), "data.normalize", kReads},
          {data.has_augment(), "data.augment", kReads},
          {data.loader_threads() != absent.loader_threads(), "data.loader_threads", kReads},
          {data.prefetch() != absent.prefetch(), "data.prefetch", kReads}},
         faults);
  if (!data.has_batch_size()) {
    faults.push_back({"data.batch_size",
                      "required key is missing with type external: give the number of examples in "
                      "one step of one worker, such as batch_size: 64"});
  }
  if (data.has_examples()) return;
  faults.push_back({"data.examples",
                    "required key is missing with type external: give the number of training "
                    "examples in one pass of all workers together, such as examples: 60000"});
}

void CheckExternalWorkers(const v1::Workers& workers, Faults& faults) {
  Refuse({{workers.has_device() && workers.device() != "cpu", "workers.device",
           "an external program chooses its own device"},
          {workers.precision() != v1::PRECISION_FP32, "workers.precision",
           "an external program chooses its own precision"},
          {workers.has_emulate(), "workers.emulate",
           "only Leeway's own workers can emulate slow ones"},
          {workers.per_host() != v1::PER_HOST_SEPARATE, "workers.per_host",
           "external programs each send their own contribution"}},
         faults);
}

void CheckExternalExchange(const v1::TrainingJob& job, Faults& faults) {
  const v1::Exchange& exchange = job.exchange();
  Refuse({{exchange.delta().has_optimizer() || exchange.elastic().has_optimizer(),
           "exchange.optimizer", "the program has its own optimizer"},
          {exchange.has_elastic() && job.has_update(), "update",
           "an elastic exchange has its own server rule, and the program has its own optimizer"},
          {exchange.delta().spread() || exchange.elastic().spread(), "exchange.spread",
           "an external program hands in all blocks at the end of its local steps"},
          {job.evaluation().weights() != v1::EVALUATED_WEIGHTS_CURRENT, "evaluation.weights",
           "an external program evaluates the weights that it trains"}},
         faults);
}

}  // namespace

bool IsExternal(const v1::TrainingJob& job) {
  return job.model().type() == v1::MODEL_TYPE_EXTERNAL;
}

bool BringsUpdate(const v1::TrainingJob& job) {
  return IsExternal(job) && job.exchange().has_gradient() && !job.has_update();
}

absl::Status CheckHasLayers(const v1::TrainingJob& job, const std::string& who) {
  if (!IsExternal(job)) return absl::OkStatus();
  return AtKey(absl::FailedPreconditionError(absl::StrCat(
                   "the job's model is external: only the job's own program can compute it, and ",
                   who, " cannot")),
               "model.type");
}

void CheckExternal(const v1::TrainingJob& job, std::vector<Fault>& faults) {
  CheckPair(job, faults);
  if (!IsExternal(job)) {
    // If a job has no layers and its data is external, the user means an external model, and only
    // model.type is missing or invalid. Missing layers are not reported then.
    const bool meant = HasExternalData(job) && job.model().layers().empty();
    if (!meant) CheckLayers(job, faults);
    if (job.has_data() && !HasExternalData(job)) CheckHasNoFiles(job.data(), faults);
    return;
  }
  CheckExternalModel(job, faults);
  if (HasExternalData(job)) CheckExternalData(job.data(), faults);
  CheckExternalWorkers(job.workers(), faults);
  CheckExternalExchange(job, faults);
}

}  // namespace leeway
