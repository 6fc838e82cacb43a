#include "worker/model/model.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/model/initializer.h"

namespace leeway {
namespace {

// Examples that are evaluated at a time, which bounds the memory for large batches.
constexpr size_t kEvaluateExamples = 256;

}  // namespace

void Model::Initialize(uint64_t seed, std::span<float> weights) const {
  uint64_t index = 0;
  for (const std::vector<Placed>& layer : tensors_) {
    for (const Placed& tensor : layer) {
      InitializeTensor(tensor.plan, seed, index++,
                       weights.subspan(tensor.offset, tensor.plan.elements()));
    }
  }
}

absl::Status Model::Check(const Batch& batch, size_t weights) const {
  const size_t elements = layers_.front()->input().elements();
  if (weights != schema_.total()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has ", schema_.total(), " weights, but was given ", weights));
  }
  if (batch.features.size() < batch.size * elements || batch.labels.size() < batch.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", batch.size, " examples of ", elements, " features has ",
                     batch.features.size(), " features and ", batch.labels.size(), " labels"));
  }
  return loss_->CheckLabels(std::span(batch.labels).first(batch.size),
                            layers_.back()->output().channels);
}

absl::Status Model::Prepare(size_t examples) {
  if (workspace_ != nullptr && workspace_->capacity() >= examples) return absl::OkStatus();
  // The old one goes first: memory for one is enough.
  workspace_.reset();
  ASSIGN_OR_RETURN(workspace_, Workspace::Make(layers_, examples, schema_.total(), backend_));
  return absl::OkStatus();
}

void Model::SetWeights(std::span<const float> weights) {
  const float* flat = weights.data();
  if (!backend_.shares_host_memory()) {
    backend_.CopyFromHost(weights, workspace_->weights());
    flat = workspace_->weights();
  }
  weights_.resize(layers_.size());
  for (size_t i = 0; i < layers_.size(); ++i) {
    weights_[i].clear();
    for (const Placed& tensor : tensors_[i]) weights_[i].push_back(flat + tensor.offset);
  }
}

void Model::SetContribution(float* contribution) {
  contributions_.resize(layers_.size());
  for (size_t i = 0; i < layers_.size(); ++i) {
    contributions_[i].clear();
    for (const Placed& tensor : tensors_[i]) {
      contributions_[i].push_back(contribution + tensor.offset);
    }
  }
}

Model::Examples Model::ToDevice(const Batch& batch, size_t begin, size_t end) {
  const size_t elements = layers_.front()->input().elements();
  const std::span features =
      std::span(batch.features).subspan(begin * elements, (end - begin) * elements);
  const std::span labels = std::span(batch.labels).subspan(begin, end - begin);
  if (backend_.shares_host_memory()) return {end - begin, features.data(), labels.data()};
  backend_.CopyFromHost(features, workspace_->features());
  backend_.CopyFromHost(labels, workspace_->labels());
  return {end - begin, workspace_->features(), workspace_->labels()};
}

Pass Model::PassOf(size_t layer, size_t panel, size_t batch, bool training, const Draw& draw) {
  return {.backend = backend_,
          .batch = batch,
          .training = training,
          .draw = draw,
          .layer = static_cast<uint32_t>(layer),
          .panel = panel,
          .weights = weights_[layer],
          .contributions =
              training ? std::span<float* const>(contributions_[layer]) : std::span<float* const>(),
          .saved = workspace_->layer(layer).saved,
          .scratch = workspace_->scratch()};
}

const float* Model::InputOf(size_t layer, const Examples& examples) const {
  const float* output = layer == 0 ? nullptr : workspace_->layer(layer - 1).output;
  return output == nullptr ? examples.features : output;
}

absl::StatusOr<const float*> Model::Forward(const Examples& examples, bool training,
                                            const Draw& draw, TrainObserver& observer) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i]->placement() == Placement::kView) continue;
    for (size_t p = 0; p < panels_[i].size(); ++p) {
      const Panel& panel = panels_[i][p];
      if (!panel.all.empty()) RETURN_IF_ERROR(observer.BeforeForward(panel.all));
      layers_[i]->Forward(PassOf(i, p, examples.count, training, draw), InputOf(i, examples),
                          workspace_->layer(i).output);
    }
  }
  return InputOf(layers_.size(), examples);
}

absl::Status Model::Backward(const Examples& examples, const Draw& draw, TrainObserver& observer) {
  int current = 0;
  for (size_t i = layers_.size(); i-- > first_trained_;) {
    if (layers_[i]->placement() == Placement::kView) continue;
    const LayerBuffers& buffers = workspace_->layer(i);
    float* dy = workspace_->gradient(current);
    if (!buffers.shares_input) current = 1 - current;
    float* dx = i == first_trained_ ? nullptr : workspace_->gradient(current);
    for (size_t p = 0; p < panels_[i].size(); ++p) {
      layers_[i]->Backward(PassOf(i, p, examples.count, true, draw), InputOf(i, examples),
                           buffers.output, dy, dx);
      const ElementRange& trained = panels_[i][p].trained;
      if (trained.count > 0) RETURN_IF_ERROR(observer.OnFinal({&trained, 1}));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<double> Model::RunBatch(const Batch& batch, const Draw& draw,
                                       TrainObserver& observer) {
  const Examples examples = ToDevice(batch, 0, batch.size);
  ASSIGN_OR_RETURN(const float* scores, Forward(examples, true, draw, observer));
  const LossSum loss = loss_->Compute(backend_, batch.size, layers_.back()->output().channels,
                                      scores, examples.labels, workspace_->gradient(0));
  RETURN_IF_ERROR(observer.AfterForward(loss.loss, batch.size));
  if (!averaged_.empty()) RETURN_IF_ERROR(observer.OnFinal(averaged_));
  RETURN_IF_ERROR(Backward(examples, draw, observer));
  return loss.loss;
}

absl::StatusOr<double> Model::TrainOnDevice(const Batch& batch, std::span<const float> weights,
                                            const Draw& draw, std::span<float> contribution,
                                            TrainObserver& observer) {
  const ElementRange all[] = {{0, schema_.total()}};
  RETURN_IF_ERROR(observer.BeforeForward(all));
  SetWeights(weights);
  SetContribution(workspace_->contribution());
  TrainObserver none;
  ASSIGN_OR_RETURN(const double loss, RunBatch(batch, draw, none));
  RETURN_IF_ERROR(observer.AfterForward(loss, batch.size));
  backend_.CopyToHost(workspace_->contribution(), contribution);
  RETURN_IF_ERROR(observer.OnFinal(all));
  return loss;
}

absl::StatusOr<double> Model::TrainOnNothing(std::span<float> contribution,
                                             TrainObserver& observer) {
  const ElementRange all[] = {{0, schema_.total()}};
  RETURN_IF_ERROR(observer.BeforeForward(all));
  std::fill(contribution.begin(), contribution.end(), 0.0f);
  RETURN_IF_ERROR(observer.AfterForward(0, 0));
  RETURN_IF_ERROR(observer.OnFinal(all));
  return 0.0;
}

absl::StatusOr<double> Model::Train(const Batch& batch, std::span<const float> weights,
                                    const Draw& draw, std::span<float> contribution,
                                    TrainObserver* observer) {
  RETURN_IF_ERROR(Check(batch, weights.size()));
  if (contribution.size() != schema_.total()) {
    return absl::InvalidArgumentError(absl::StrCat("a contribution has ", schema_.total(),
                                                   " elements, not ", contribution.size()));
  }
  TrainObserver none;
  TrainObserver& told = observer == nullptr ? none : *observer;
  if (batch.size == 0) return TrainOnNothing(contribution, told);
  RETURN_IF_ERROR(Prepare(batch.size));
  if (!backend_.shares_host_memory()) {
    return TrainOnDevice(batch, weights, draw, contribution, told);
  }
  SetWeights(weights);
  SetContribution(contribution.data());
  return RunBatch(batch, draw, told);
}

absl::StatusOr<Model::Evaluation> Model::Evaluate(const Batch& batch,
                                                  std::span<const float> weights) {
  RETURN_IF_ERROR(Check(batch, weights.size()));
  Evaluation evaluation{.examples = batch.size};
  if (batch.size == 0) return evaluation;
  RETURN_IF_ERROR(Prepare(std::min(batch.size, kEvaluateExamples)));
  SetWeights(weights);
  TrainObserver none;
  std::vector<float> predictions;
  for (size_t begin = 0; begin < batch.size; begin += kEvaluateExamples) {
    const Examples examples =
        ToDevice(batch, begin, std::min(batch.size, begin + kEvaluateExamples));
    ASSIGN_OR_RETURN(const float* scores, Forward(examples, false, {}, none));
    const LossSum loss = loss_->Compute(backend_, examples.count, layers_.back()->output().channels,
                                        scores, examples.labels, nullptr);
    evaluation.loss_sum += loss.loss;
    evaluation.correct += loss.correct;
    if (!loss_->is_regression()) continue;
    predictions.resize(examples.count);
    backend_.CopyToHost(scores, predictions);
    for (size_t i = 0; i < examples.count; ++i) {
      evaluation.error.Add(predictions[i], batch.labels[begin + i]);
    }
  }
  return evaluation;
}

}  // namespace leeway
