#include "worker/model/model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "worker/model/initializer.h"

namespace leeway {
namespace {

// What is evaluated at a time, which bounds the memory for large batches: examples, and floats of
// the largest layer.
constexpr size_t kEvaluateExamples = 256;
constexpr size_t kEvaluateFloats = size_t{1} << 27;

size_t EvaluatedAtATime(const Graph& graph) {
  size_t largest = 1;
  for (const Value& value : graph.values) largest = std::max(largest, value.shape.elements());
  return std::clamp<size_t>(kEvaluateFloats / largest, 1, kEvaluateExamples);
}

double MebibytesOf(uint64_t floats) { return static_cast<double>(floats) * sizeof(float) / 0x1p20; }

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
  const size_t elements = graph_.values.front().shape.elements();
  if (weights != schema_.total()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has ", schema_.total(), " weights, but was given ", weights));
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

absl::Status Model::CheckTokens(std::span<const float> features) const {
  if (tokens_ == 0) return absl::OkStatus();
  const size_t elements = graph_.values.front().shape.elements();
  for (size_t i = 0; i < features.size(); ++i) {
    const float token = features[i];
    if (token >= 0 && token < static_cast<float>(tokens_) && token == std::floor(token)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "value ", i % elements, " of example ", i / elements, " of the batch is ", token,
        ", not a token from 0 to ", tokens_ - 1, ": the embedding's vocabulary is ", tokens_));
  }
  return absl::OkStatus();
}

absl::Status Model::Prepare(size_t examples) {
  if (workspace_ != nullptr && workspace_->capacity() >= examples) return absl::OkStatus();
  // The old one goes first: memory for one is enough.
  workspace_.reset();
  auto made = Workspace::Make(graph_, examples, schema_.total(), backend_);
  if (absl::IsResourceExhausted(made.status())) return NoRoom(examples, made.status());
  RETURN_IF_ERROR(made.status());
  workspace_ = *std::move(made);
  return absl::OkStatus();
}

MemoryPlan Model::PlanMemory(size_t examples, bool own_memory) const {
  return Workspace::Measure(graph_, examples, schema_.total(), own_memory, backend_);
}

size_t Model::LargestBatch(size_t below) {
  size_t fits = 0;
  while (fits + 1 < below) {
    const size_t tried = fits + (below - fits) / 2;
    const bool room = Workspace::Make(graph_, tried, schema_.total(), backend_).ok();
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
  // A CPU's memory is promised before it is there: to try what fits would take it.
  if (own_memory) {
    const size_t fits = LargestBatch(examples);
    absl::StrAppend(&text, "; ",
                    fits > 0 ? absl::StrCat("a batch of ", fits, " fits: set data.batch_size")
                             : "not even one example fits: make the model smaller");
  }
  return absl::ResourceExhaustedError(text);
}

void Model::SetVectors(std::span<const float> weights, std::span<float> contribution, Home home) {
  host_weights_ = weights;
  host_contribution_ = contribution;
  travels_ = home == Home::kHost && !backend_.shares_host_memory();
  const float* const read = travels_ ? workspace_->weights() : weights.data();
  float* const written = travels_ ? workspace_->contribution() : contribution.data();
  contribution_ = written;
  weights_.resize(tensors_.size());
  contributions_.resize(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    weights_[i].clear();
    contributions_[i].clear();
    for (const Placed& tensor : tensors_[graph_.nodes[i].tied_to.value_or(i)]) {
      weights_[i].push_back(read + tensor.offset);
      if (!contribution.empty()) contributions_[i].push_back(written + tensor.offset);
    }
  }
}

void Model::Up(std::span<const float> host, float* device) {
  backend_.CopyToDevice(Stream::kUp, host, device);
  going_up_ = true;
}

void Model::AwaitUp() {
  if (going_up_) backend_.Wait(Stream::kCompute, backend_.Record(Stream::kUp));
  going_up_ = false;
  computing_ = true;
}

void Model::AwaitKernels() {
  if (computing_) backend_.Wait(Stream::kDown, backend_.Record(Stream::kCompute));
  computing_ = false;
}

Model::Examples Model::ExamplesUp(const Batch& batch, size_t begin, size_t end) {
  const size_t elements = graph_.values.front().shape.elements();
  const std::span features =
      std::span(batch.features).subspan(begin * elements, (end - begin) * elements);
  const size_t each = graph_.positions();
  const std::span labels = std::span(batch.labels).subspan(begin * each, (end - begin) * each);
  if (backend_.shares_host_memory()) return {end - begin, features.data(), labels.data()};
  Up(features, workspace_->features());
  Up(labels, workspace_->labels());
  return {end - begin, workspace_->features(), workspace_->labels()};
}

void Model::WeightsUp(std::span<const ElementRange> elements) {
  if (!travels_) return;
  for (const ElementRange& range : elements) {
    Up(host_weights_.subspan(range.offset, range.count), workspace_->weights() + range.offset);
  }
}

StreamEvent Model::ContributionDown(std::span<const ElementRange> elements) {
  if (!travels_) return backend_.Record(Stream::kCompute);
  AwaitKernels();
  for (const ElementRange& range : elements) {
    backend_.CopyToHost(Stream::kDown, workspace_->contribution() + range.offset,
                        host_contribution_.subspan(range.offset, range.count));
  }
  return backend_.Record(Stream::kDown);
}

StreamEvent Model::LossDown(size_t batch, const float* scores, const float* labels,
                            float* dscores) {
  static_assert(sizeof(LossSum) % sizeof(float) == 0);
  LossSum* const sums = workspace_->sums();
  computing_ = true;
  const uint32_t units = graph_.scores().channels;
  const size_t rows = batch * graph_.positions();
  loss_->Compute(backend_, rows, units, scores, labels, sums, dscores);
  if (dscores != nullptr && loss_scale_ != 1) {
    backend_.Scale(rows * units, loss_scale_, dscores, nullptr);
  }
  AwaitKernels();
  backend_.CopyToHost(Stream::kDown, reinterpret_cast<const float*>(sums),
                      {reinterpret_cast<float*>(&sums_), sizeof(sums_) / sizeof(float)});
  return backend_.Record(Stream::kDown);
}

void Model::Drain() {
  for (const Stream stream : {Stream::kUp, Stream::kCompute, Stream::kDown}) {
    backend_.Await(backend_.Record(stream)).IgnoreError();
  }
}

Pass Model::PassOf(size_t node, size_t panel, size_t batch, bool training, const Draw& draw) {
  return {.backend = backend_,
          .batch = batch,
          .training = training,
          .draw = draw,
          .layer = static_cast<uint32_t>(node),
          .panel = panel,
          .weights = weights_[node],
          .contributions =
              training ? std::span<float* const>(contributions_[node]) : std::span<float* const>(),
          .accumulate = graph_.nodes[node].accumulates,
          .saved = workspace_->node(node).saved,
          .scratch = workspace_->scratch()};
}

const float* Model::ValueOf(size_t value, const Examples& examples) const {
  const float* output = value == 0 ? nullptr : workspace_->node(value - 1).output;
  return output == nullptr ? examples.features : output;
}

void Model::Add(size_t count, const float* x, float* y) { backend_.AddRows(1, count, x, y); }

void Model::ForwardJoin(size_t index, const Examples& examples) {
  const Node& node = graph_.nodes[index];
  const NodeBuffers& buffers = workspace_->node(index);
  const ImageShape& shape = graph_.output(index).shape;
  if (node.kind == Node::Kind::kAdd) {
    const size_t count = examples.count * shape.elements();
    if (!buffers.shares_input) {
      backend_.Copy(count, ValueOf(node.inputs[0], examples), buffers.output);
    }
    return Add(count, ValueOf(node.inputs[1], examples), buffers.output);
  }
  const size_t rows = examples.count * shape.height * shape.width;
  float* target = buffers.output;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const size_t channels = graph_.input(index, k).shape.channels;
    backend_.CopyColumns({rows, channels, channels, shape.channels},
                         ValueOf(node.inputs[k], examples), target);
    target += channels;
  }
}

absl::StatusOr<const float*> Model::Forward(const Examples& examples, bool training,
                                            const Draw& draw, TrainObserver& observer) {
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    if (node.is_view()) continue;
    if (node.layer == nullptr) {
      AwaitUp();
      ForwardJoin(i, examples);
      continue;
    }
    for (size_t p = 0; p < panels_[i].size(); ++p) {
      const Panel& panel = panels_[i][p];
      if (!panel.all.empty()) {
        RETURN_IF_ERROR(observer.BeforeForward(panel.all));
        if (training) WeightsUp(panel.all);
      }
      AwaitUp();
      node.layer->Forward(PassOf(i, p, examples.count, training, draw),
                          ValueOf(node.inputs[0], examples), workspace_->node(i).output);
    }
  }
  return ValueOf(graph_.nodes.size(), examples);
}

absl::Status Model::BackwardLayer(const GradientStep& step, const Examples& examples,
                                  const Draw& draw) {
  const size_t i = step.node;
  const Node& node = graph_.nodes[i];
  float* const dy = workspace_->gradient(step.output);
  const std::optional<GradientBuffer>& to = step.inputs[0].to;
  float* const dx = to.has_value() ? workspace_->gradient(*to) : nullptr;
  for (size_t p = 0; p < panels_[i].size(); ++p) {
    computing_ = true;
    node.layer->Backward(PassOf(i, p, examples.count, true, draw),
                         ValueOf(node.inputs[0], examples), workspace_->node(i).output, dy, dx);
    if (panels_[i][p].trained.count == 0) continue;
    const std::span trained(&panels_[i][p].trained, 1);
    if (loss_scale_ != 1) {
      backend_.Scale(trained[0].count, 1 / loss_scale_, contribution_ + trained[0].offset, nullptr);
    }
    RETURN_IF_ERROR(deliveries_.AddFinal(ContributionDown(trained), trained));
  }
  return absl::OkStatus();
}

void Model::BackwardJoin(const GradientStep& step, size_t which, size_t batch) {
  if (graph_.nodes[step.node].kind != Node::Kind::kConcat) return;
  const ImageShape& shape = graph_.output(step.node).shape;
  size_t before = 0;
  for (size_t k = 0; k < which; ++k) before += graph_.input(step.node, k).shape.channels;
  const size_t channels = graph_.input(step.node, which).shape.channels;
  backend_.CopyColumns({batch * shape.height * shape.width, channels, shape.channels, channels},
                       workspace_->gradient(step.output) + before,
                       workspace_->gradient(*step.inputs[which].to));
}

absl::Status Model::BackwardStep(const GradientStep& step, const Examples& examples,
                                 const Draw& draw) {
  const Node& node = graph_.nodes[step.node];
  if (node.layer != nullptr && !node.is_view()) {
    RETURN_IF_ERROR(BackwardLayer(step, examples, draw));
  }
  for (size_t k = 0; k < step.inputs.size(); ++k) {
    const InputGradient& input = step.inputs[k];
    if (!input.to.has_value()) continue;
    const size_t count = examples.count * graph_.input(step.node, k).shape.elements();
    float* const gradient = workspace_->gradient(*input.to);
    computing_ = true;
    if (node.layer == nullptr) BackwardJoin(step, k, examples.count);
    if (input.copy_of.has_value()) {
      backend_.Copy(count, workspace_->gradient(*input.copy_of), gradient);
    }
    if (input.add.has_value()) {
      Add(count, workspace_->gradient(*input.add), gradient);
    }
  }
  return absl::OkStatus();
}

absl::Status Model::Backward(const Examples& examples, const Draw& draw) {
  for (const GradientStep& step : workspace_->gradients().steps) {
    RETURN_IF_ERROR(BackwardStep(step, examples, draw));
  }
  return absl::OkStatus();
}

absl::Status Model::RunBatch(const Batch& batch, const Draw& draw, TrainObserver& observer) {
  deliveries_.Begin(observer, sums_, {.examples = batch.size, .labels_each = graph_.positions()});
  const Examples examples = ExamplesUp(batch, 0, batch.size);
  ASSIGN_OR_RETURN(const float* scores, Forward(examples, true, draw, observer));
  RETURN_IF_ERROR(deliveries_.AddLoss(LossDown(
      batch.size, scores, examples.labels, workspace_->gradient(workspace_->gradients().scores))));
  if (!averaged_.empty()) {
    RETURN_IF_ERROR(deliveries_.AddFinal(ContributionDown(averaged_), averaged_));
  }
  RETURN_IF_ERROR(Backward(examples, draw));
  return deliveries_.Finish();
}

absl::StatusOr<double> Model::TrainOnNothing(std::span<float> contribution, Home home,
                                             TrainObserver& observer) {
  const ElementRange all[] = {{0, schema_.total()}};
  RETURN_IF_ERROR(observer.BeforeForward(all));
  if (home == Home::kDevice) {
    backend_.Fill(contribution.size(), 0, contribution.data());
  } else {
    std::fill(contribution.begin(), contribution.end(), 0.0f);
  }
  RETURN_IF_ERROR(observer.AfterForward(0, 0));
  RETURN_IF_ERROR(observer.OnFinal(all));
  return 0.0;
}

absl::StatusOr<double> Model::Train(const Batch& batch, std::span<const float> weights,
                                    const Draw& draw, std::span<float> contribution,
                                    TrainObserver* observer, Home home, float loss_scale) {
  RETURN_IF_ERROR(Check(batch, weights.size()));
  if (contribution.size() != schema_.total()) {
    return absl::InvalidArgumentError(absl::StrCat("a contribution has ", schema_.total(),
                                                   " elements, not ", contribution.size()));
  }
  TrainObserver none;
  TrainObserver& told = observer == nullptr ? none : *observer;
  if (batch.size == 0) return TrainOnNothing(contribution, home, told);
  RETURN_IF_ERROR(Prepare(batch.size));
  SetVectors(weights, contribution, home);
  loss_scale_ = loss_scale;
  const absl::Status ran = RunBatch(batch, draw, told);
  if (ran.ok()) return sums_.loss / static_cast<double>(graph_.positions());
  // Copies that are still queued read and write what is the caller's.
  Drain();
  return ran;
}

absl::StatusOr<Model::Evaluation> Model::Evaluate(const Batch& batch,
                                                  std::span<const float> weights) {
  RETURN_IF_ERROR(Check(batch, weights.size()));
  Evaluation evaluation{.labels = batch.size * graph_.positions(), .examples = batch.size};
  if (batch.size == 0) return evaluation;
  const size_t at_a_time = EvaluatedAtATime(graph_);
  RETURN_IF_ERROR(Prepare(std::min(batch.size, at_a_time)));
  SetVectors(weights, {}, Home::kHost);
  const ElementRange all[] = {{0, schema_.total()}};
  WeightsUp(all);
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
  LossDown(examples.count, scores, examples.labels, nullptr);
  std::vector<float> predictions(loss_->is_regression() ? examples.count : 0);
  if (!predictions.empty()) backend_.CopyToHost(Stream::kDown, scores, predictions);
  RETURN_IF_ERROR(backend_.Await(backend_.Record(Stream::kDown)));
  evaluation.loss_sum += sums_.loss / static_cast<double>(graph_.positions());
  evaluation.correct += sums_.correct;
  evaluation.in_top5 += sums_.in_top5;
  for (size_t i = 0; i < predictions.size(); ++i) {
    evaluation.error.Add(predictions[i], batch.labels[begin + i]);
  }
  return absl::OkStatus();
}

}  // namespace leeway
