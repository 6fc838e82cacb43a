#include "worker/model/model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/job_key.h"
#include "common/status.h"

namespace leeway {
namespace {

// The largest number of examples that are evaluated at once, and the largest number of floats of
// one layer's output in that evaluation. These limits bound the memory for large batches.
constexpr size_t kEvaluateExamples = 256;
constexpr size_t kEvaluateFloats = size_t{1} << 27;

double MebibytesOf(uint64_t floats) { return static_cast<double>(floats) * sizeof(float) / 0x1p20; }

// Returns an error if the model has a plugin's layer or loss, and the device does not share the
// host's memory. Plugins compute on the CPU only.
absl::Status CheckMemory(const Graph& graph, const Loss& loss, const Backend& backend) {
  if (backend.shares_host_memory()) return absl::OkStatus();
  const auto refuse = [](absl::string_view what, absl::string_view key) {
    return AtKey(absl::UnimplementedError(
                     absl::StrCat(what, " of plugins compute on the CPU: set workers.device: cpu")),
                 key);
  };
  for (const Node& node : graph.nodes) {
    const bool on_host = node.layer != nullptr && node.layer->needs_host_memory();
    if (on_host) return refuse(absl::StrCat("layer '", node.name, "': layers"), node.key);
  }
  return loss.needs_host_memory() ? refuse("losses", "model.custom_loss") : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Build(const v1::Model& config,
                                                    const ImageShape& input, uint32_t classes,
                                                    Backend& backend, size_t labels, bool mixed) {
  ASSIGN_OR_RETURN(const Plugins plugins, Plugins::Load(config));
  ASSIGN_OR_RETURN(Graph graph, MakeGraph(config, input, plugins));
  ASSIGN_OR_RETURN(std::unique_ptr<Loss> loss, MakeLoss(config, plugins));
  RETURN_IF_ERROR(CheckMemory(graph, *loss, backend));
  RETURN_IF_ERROR(AtKey(loss->CheckOutput(graph.scores(), {classes, labels}), "model.loss"));
  ASSIGN_OR_RETURN(ModelLayout layout, ModelLayout::Make(graph));
  return std::unique_ptr<Model>(
      new Model(backend, std::move(loss), std::move(graph), std::move(layout), mixed));
}

Model::Flops Model::flops() const {
  Flops flops;
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Layer* layer = graph_.nodes[i].layer.get();
    if (layer == nullptr) continue;
    const double forward = layer->flops();
    flops.forward += forward;
    if (!graph_.output(i).trained) continue;
    flops.backward += graph_.input(i).trained ? 2 * forward : forward;
  }
  return flops;
}

absl::Status Model::Check(const Batch& batch, size_t weights) const {
  const size_t elements = graph_.values.front().shape.elements();
  if (weights != layout_.total()) {
    return absl::InvalidArgumentError(absl::StrCat("the model has ", layout_.total(),
                                                   " weights, but the caller supplied ", weights));
  }
  const size_t labels = batch.size * graph_.positions();
  if (batch.features.size() < batch.size * elements || batch.labels.size() < labels) {
    const std::string each =
        graph_.positions() == 1 ? "" : absl::StrCat(" and ", graph_.positions(), " labels");
    return absl::InvalidArgumentError(absl::StrCat(
        "a batch of ", batch.size, " examples of ", elements, " features", each, " has ",
        batch.features.size(), " features and ", batch.labels.size(), " labels"));
  }
  RETURN_IF_ERROR(CheckTokens(std::span(batch.features).first(batch.size * elements)));
  return loss_->CheckLabels(std::span(batch.labels).first(labels), graph_.scores().channels);
}

absl::Status Model::CheckOtherLabels(const Batch& batch) const {
  if (batch.other_labels.empty()) return absl::OkStatus();
  const size_t labels = batch.size * graph_.positions();
  if (!mixed_ || batch.other_labels.size() != labels || !(batch.share >= 0 && batch.share <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a batch of ", batch.size, " examples has ", batch.other_labels.size(),
        " mixup labels with a share of ", 1 - batch.share,
        mixed_ ? absl::StrCat("; there must be ", labels, " mixup labels, with a share from 0 to 1")
               : std::string("; this model was built for batches without mixup")));
  }
  return loss_->CheckLabels(batch.other_labels, graph_.scores().channels);
}

absl::Status Model::CheckTokens(std::span<const float> features) const {
  uint64_t tokens = 0;
  for (const Node& node : graph_.nodes) {
    const uint64_t limit = node.layer == nullptr ? 0 : node.layer->tokens();
    if (limit != 0) tokens = tokens == 0 ? limit : std::min(tokens, limit);
  }
  if (tokens == 0) return absl::OkStatus();
  const size_t elements = graph_.values.front().shape.elements();
  for (size_t i = 0; i < features.size(); ++i) {
    const float token = features[i];
    if (token >= 0 && token < static_cast<float>(tokens) && token == std::floor(token)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "value ", i % elements, " of example ", i / elements, " of the batch is ", token,
        ", not a token from 0 to ", tokens - 1, ": the embedding's vocabulary is ", tokens));
  }
  return absl::OkStatus();
}

absl::Status Model::Prepare(size_t examples) {
  if (workspace_ != nullptr && workspace_->capacity() >= examples) return absl::OkStatus();
  // The old workspace is freed before the new one is made, so that memory for one workspace is
  // enough.
  workspace_.reset();
  auto made = Workspace::Make(graph_, examples, Needs(), backend_);
  if (absl::IsResourceExhausted(made.status())) return NoRoom(examples, made.status());
  RETURN_IF_ERROR(made.status());
  workspace_ = *std::move(made);
  return absl::OkStatus();
}

MemoryPlan Model::PlanMemory(size_t examples, bool own_memory) const {
  return Workspace::Measure(graph_, examples, Needs(), own_memory, backend_);
}

size_t Model::LargestBatch(size_t below) {
  size_t fits = 0;
  while (fits + 1 < below) {
    const size_t tried = fits + (below - fits) / 2;
    const bool room = Workspace::Make(graph_, tried, Needs(), backend_).ok();
    (room ? fits : below) = tried;
  }
  return fits;
}

absl::Status Model::NoRoom(size_t examples, const absl::Status& why) {
  const bool own_memory = !backend_.shares_host_memory();
  const MemoryPlan plan = PlanMemory(examples, own_memory);
  const size_t most = plan.largest_layer();
  std::string text = absl::StrFormat(
      "a batch of %d examples needs %.1f MiB, of which layer %s needs %.1f MiB for its output and "
      "what its backward pass reads: %s",
      examples, MebibytesOf(plan.total()), graph_.nodes[most].name, MebibytesOf(plan.layers[most]),
      why.message());
  // Tries sizes only on a device with its own memory. On a CPU the operating system grants more
  // memory than exists, so trying sizes would use up the machine's memory.
  if (own_memory) {
    const size_t fits = LargestBatch(examples);
    absl::StrAppend(&text, "; ",
                    fits > 0 ? absl::StrCat("a batch of ", fits, " fits: set data.batch_size")
                             : "not even one example fits: make the model smaller");
  }
  return absl::ResourceExhaustedError(text);
}

void Model::SetVectors(std::span<const float> weights, std::span<float> contribution, Home home) {
  failure_ = absl::OkStatus();
  transfers_.Begin(weights, contribution, home);
  const bool copies = transfers_.travels();
  const float* const read = copies ? workspace_->weights() : weights.data();
  float* const written = copies ? workspace_->contribution() : contribution.data();
  contribution_ = written;
  weights_.resize(graph_.nodes.size());
  contributions_.resize(graph_.nodes.size());
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    weights_[i].clear();
    contributions_[i].clear();
    for (const ModelLayout::Placed& tensor : layout_.tensors(graph_.nodes[i].tied_to.value_or(i))) {
      weights_[i].push_back(read + tensor.offset);
      if (!contribution.empty()) contributions_[i].push_back(written + tensor.offset);
    }
  }
}

Model::Examples Model::ExamplesUp(const Batch& batch, size_t begin, size_t end) {
  const size_t elements = graph_.values.front().shape.elements();
  const std::span features =
      std::span(batch.features).subspan(begin * elements, (end - begin) * elements);
  const size_t each = graph_.positions();
  const std::span labels = std::span(batch.labels).subspan(begin * each, (end - begin) * each);
  if (backend_.shares_host_memory()) return {end - begin, features.data(), labels.data()};
  transfers_.Up(features, workspace_->features());
  transfers_.Up(labels, workspace_->labels());
  return {end - begin, workspace_->features(), workspace_->labels()};
}

void Model::OtherLabelsUp(const Batch& batch, Examples& examples) {
  if (batch.other_labels.empty()) return;
  examples.share = batch.share;
  examples.other_labels = batch.other_labels.data();
  if (backend_.shares_host_memory()) return;
  transfers_.Up(batch.other_labels, workspace_->other_labels());
  examples.other_labels = workspace_->other_labels();
}

StreamEvent Model::ContributionDown(std::span<const ElementRange> elements) {
  if (!transfers_.travels()) return backend_.Record(Stream::kCompute);
  transfers_.AwaitKernels();
  if (!deliveries_.BringDown(elements, contribution_)) {
    transfers_.ContributionDown(elements, contribution_);
  }
  return backend_.Record(Stream::kDown);
}

absl::Status Model::MixLoss(const Examples& examples, const float* scores, float* dscores) {
  const uint32_t units = graph_.scores().channels;
  const size_t rows = examples.count * graph_.positions();
  float* const other = workspace_->other_gradient();
  RETURN_IF_ERROR(loss_->Compute(backend_, rows, units, scores, examples.other_labels,
                                 workspace_->sums() + 1, other));
  backend_.AddDifference(rows * units, examples.share, dscores, other, other, dscores);
  return absl::OkStatus();
}

absl::StatusOr<StreamEvent> Model::LossDown(const Examples& examples, const float* scores,
                                            float* dscores) {
  LossSum* const sums = workspace_->sums();
  transfers_.NoteKernels();
  const uint32_t units = graph_.scores().channels;
  const size_t rows = examples.count * graph_.positions();
  RETURN_IF_ERROR(loss_->Compute(backend_, rows, units, scores, examples.labels, sums, dscores));
  const bool mixed = examples.other_labels != nullptr;
  if (mixed) RETURN_IF_ERROR(MixLoss(examples, scores, dscores));
  if (dscores != nullptr && loss_scale_ != 1) {
    backend_.Scale(rows * units, loss_scale_, dscores, nullptr);
  }
  return transfers_.LossDown(sums, examples.share, mixed);
}

absl::Status Model::RunBatch(const Batch& batch, const Draw& draw, TrainObserver& observer) {
  deliveries_.Begin(observer, transfers_.loss(),
                    {.examples = batch.size, .labels_each = graph_.positions()});
  if (transfers_.travels()) backend_.Fill(layout_.finite_cells(), 1, workspace_->finite());
  Examples examples = ExamplesUp(batch, 0, batch.size);
  OtherLabelsUp(batch, examples);
  ASSIGN_OR_RETURN(const float* scores, Forward(examples, true, draw, observer));
  float* const dscores = workspace_->gradient(workspace_->gradients().scores);
  ASSIGN_OR_RETURN(const StreamEvent loss, LossDown(examples, scores, dscores));
  RETURN_IF_ERROR(deliveries_.AddLoss(loss));
  if (!layout_.averaged().empty()) {
    const float* const finite = LookOverAveraged();
    RETURN_IF_ERROR(
        deliveries_.AddFinal(ContributionDown(layout_.averaged()), layout_.averaged(), finite));
  }
  RETURN_IF_ERROR(Backward(examples, draw));
  return deliveries_.Finish();
}

absl::StatusOr<double> Model::TrainOnNothing(std::span<float> contribution, Home home,
                                             TrainObserver& observer) {
  const ElementRange all[] = {{0, layout_.total()}};
  RETURN_IF_ERROR(observer.BeforeForward(all));
  if (home == Home::kDevice) {
    backend_.Fill(contribution.size(), 0, contribution.data());
  } else {
    std::fill(contribution.begin(), contribution.end(), 0.0f);
  }
  RETURN_IF_ERROR(observer.AfterForward(0, 0));
  RETURN_IF_ERROR(observer.OnFinal(all, home == Home::kHost));
  return 0.0;
}

absl::StatusOr<double> Model::Train(const Batch& batch, std::span<const float> weights,
                                    const Draw& draw, std::span<float> contribution,
                                    TrainObserver* observer, Home home, float loss_scale) {
  RETURN_IF_ERROR(Check(batch, weights.size()));
  if (contribution.size() != layout_.total()) {
    return absl::InvalidArgumentError(absl::StrCat("a contribution has ", layout_.total(),
                                                   " elements, not ", contribution.size()));
  }
  RETURN_IF_ERROR(CheckOtherLabels(batch));
  TrainObserver none;
  TrainObserver& told = observer == nullptr ? none : *observer;
  if (batch.size == 0) return TrainOnNothing(contribution, home, told);
  RETURN_IF_ERROR(Prepare(batch.size));
  SetVectors(weights, contribution, home);
  loss_scale_ = loss_scale;
  const absl::Status ran = RunBatch(batch, draw, told);
  if (ran.ok()) return transfers_.loss().total() / static_cast<double>(graph_.positions());
  // Queued copies may still read and write the caller's memory, so wait for them.
  transfers_.Drain();
  return ran;
}

size_t Model::evaluated_at_a_time() const {
  size_t largest = 1;
  for (const Value& value : graph_.values) largest = std::max(largest, value.shape.elements());
  return std::clamp<size_t>(kEvaluateFloats / largest, 1, kEvaluateExamples);
}

absl::StatusOr<Model::Evaluation> Model::Evaluate(const Batch& batch,
                                                  std::span<const float> weights) {
  RETURN_IF_ERROR(Check(batch, weights.size()));
  Evaluation evaluation{.labels = batch.size * graph_.positions(), .examples = batch.size};
  if (batch.size == 0) return evaluation;
  const size_t at_a_time = evaluated_at_a_time();
  RETURN_IF_ERROR(Prepare(std::min(batch.size, at_a_time)));
  SetVectors(weights, {}, Home::kHost);
  const ElementRange all[] = {{0, layout_.total()}};
  transfers_.WeightsUp(all, workspace_->weights());
  for (size_t begin = 0; begin < batch.size; begin += at_a_time) {
    RETURN_IF_ERROR(
        EvaluatePart(batch, begin, std::min(batch.size, begin + at_a_time), evaluation));
  }
  return evaluation;
}

absl::Status Model::EvaluatePart(const Batch& batch, size_t begin, size_t end,
                                 Evaluation& evaluation) {
  TrainObserver none;
  const Examples examples = ExamplesUp(batch, begin, end);
  ASSIGN_OR_RETURN(const float* scores, Forward(examples, false, {}, none));
  RETURN_IF_ERROR(LossDown(examples, scores, nullptr).status());
  std::vector<float> predictions(loss_->is_regression() ? examples.count : 0);
  if (!predictions.empty()) backend_.CopyToHost(Stream::kDown, scores, predictions);
  RETURN_IF_ERROR(backend_.Await(backend_.Record(Stream::kDown)));
  evaluation.loss_sum += transfers_.loss().total() / static_cast<double>(graph_.positions());
  evaluation.correct += transfers_.loss().sums[0].correct;
  evaluation.in_top5 += transfers_.loss().sums[0].in_top5;
  for (size_t i = 0; i < predictions.size(); ++i) {
    evaluation.error.Add(predictions[i], batch.labels[begin + i]);
  }
  return absl::OkStatus();
}

}  // namespace leeway
