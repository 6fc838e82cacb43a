// A model: layers over one flat vector of weights, trained a batch at a time.
//
// The flat vector, float32, is what workers and servers exchange. First come all trained tensors in
// the order of the layers, then all averaged ones (batch normalisation's running statistics);
// schema() names each.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/blocks.h"
#include "common/buffer.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"
#include "worker/compute/backend.h"
#include "worker/data/batch.h"
#include "worker/data/shape.h"
#include "worker/layers/layer.h"
#include "worker/model/batch_loss.h"
#include "worker/model/deliveries.h"
#include "worker/model/graph.h"
#include "worker/model/loss.h"
#include "worker/model/memory_plan.h"
#include "worker/model/regression_error.h"
#include "worker/model/step_vectors.h"
#include "worker/model/train_observer.h"
#include "worker/model/workspace.h"

namespace leeway {

// Holds no weights: every call takes them. Not thread-safe.
class Model {
 public:
  using Draw = leeway::Draw;
  struct Evaluation {
    double loss_sum = 0;
    // Labels: one an example, or one for each position.
    uint64_t labels = 0;
    // Of them, those whose class was right, and those whose class was among the five with the
    // highest scores (softmax only); 0 for a squared loss.
    uint64_t correct = 0;
    uint64_t in_top5 = 0;
    uint64_t examples = 0;
    // Of a squared loss.
    RegressionError error = {};
  };
  // Floating-point operations of the matrix products for one example; backward without the gradient
  // of the first trained layer's input, which nobody needs.
  struct Flops {
    double forward = 0;
    double backward = 0;
  };

  // The layers of `config` for examples of shape `input` with `labels` labels each, of `classes`
  // classes (0: numbers). With several labels the scores have as many positions. `mixed`: batches
  // to train on may have other labels, too (batch.h). The backend must outlive the model.
  // INVALID_ARGUMENT at the key of the layer that does not fit (common/job_key.h).
  static absl::StatusOr<std::unique_ptr<Model>> Build(const v1::Model& config,
                                                      const ImageShape& input, uint32_t classes,
                                                      Backend& backend, size_t labels = 1,
                                                      bool mixed = false);

  Backend& backend() const { return backend_; }
  const v1::ModelSchema& schema() const { return schema_; }
  const Flops& flops() const { return flops_; }

  // Enough classes for the five best of them to say something.
  bool tells_top5() const { return graph_.scores().channels > 10; }

  // The layers, and the places where branches meet.
  const Graph& graph() const { return graph_; }

  // What a batch of so many examples takes besides the caller's vectors. `own_memory`: on a device
  // that has memory of its own, with its copies of weights and contribution; scratch is about this
  // backend's.
  MemoryPlan PlanMemory(size_t examples, bool own_memory) const;
  // Makes room for batches of so many examples now and not at the first of them.
  // RESOURCE_EXHAUSTED, naming the layer that takes most and the batch that fits.
  absl::Status Reserve(size_t examples) { return Prepare(examples); }

  // Writes the first weights [schema().total]: a pure function of the seed.
  void Initialize(uint64_t seed, std::span<float> weights) const;

  // Forward and backward over the batch: returns the sum of the examples' losses (each the mean
  // over its labels) and writes the contribution [schema().total]. For trained elements that is the
  // gradient of the batch's mean loss, for averaged ones the batch's own statistic. An empty batch
  // gives 0 and zeros. A loss or gradient that is not finite is returned as it is. INVALID_ARGUMENT
  // for labels or sizes that do not fit, RESOURCE_EXHAUSTED for memory; then the contribution is as
  // it was.
  //
  // `home` says whose memory weights and contribution are, `loss_scale` what happens to the loss on
  // the way (step_vectors.h): the contribution is the same but for what that rounds otherwise, or
  // makes infinite.
  //
  // The observer is called layer by layer, and for large layers panel by panel (layer.h). A device
  // with memory of its own gets weights when the observer has let them be read, and the observer
  // hears of what is final when it has come back; when Train returns, however it does, the device
  // is through. The observer changes no bit of the result. Its error is returned as it is, and a
  // device's (Backend::status) names what failed.
  absl::StatusOr<double> Train(const Batch& batch, std::span<const float> weights, const Draw& draw,
                               std::span<float> contribution, TrainObserver* observer = nullptr,
                               Home home = Home::kHost, float loss_scale = 1);

  // Examples of a batch that Evaluate computes at once: more are cut.
  size_t evaluated_at_a_time() const;
  // Forward only, with running statistics and without dropout. Errors as for Train.
  absl::StatusOr<Evaluation> Evaluate(const Batch& batch, std::span<const float> weights);

 private:
  // A layer's tensor: which range of the flat vector.
  struct Placed {
    TensorPlan plan;
    size_t offset = 0;
  };
  // Where a panel of a layer's tensors lies.
  struct Panel {
    // With the layer's averaged tensors; none where it has no tensors.
    std::vector<ElementRange> all;
    ElementRange trained;
    // Of all the model's panels.
    size_t number = 0;
  };
  // Examples on the device.
  struct Examples {
    size_t count = 0;
    const float* features = nullptr;
    const float* labels = nullptr;
    // Of a batch that is mixed.
    const float* other_labels = nullptr;
    float share = 1;
  };

  Model(Backend& backend, std::unique_ptr<Loss> loss, Graph graph, bool mixed)
      : backend_(backend),
        loss_(std::move(loss)),
        graph_(std::move(graph)),
        mixed_(mixed),
        cuts_products_(backend.cuts_products()),
        deliveries_(backend) {
    page_pinned_ =
        backend.Pin({reinterpret_cast<float*>(page_.get()), sizeof(LossPage) / sizeof(float)});
  }

  absl::Status PlaceTensors();
  void PlacePanels();
  void CountFlops();

  absl::Status Check(const Batch& batch, size_t weights) const;
  absl::Status CheckOtherLabels(const Batch& batch) const;
  absl::Status CheckTokens(std::span<const float> features) const;
  size_t panels() const { return panels_.back().back().number + 1; }
  // Parts that are looked over: each panel, and last all averaged elements.
  size_t finite_cells() const { return panels() + (averaged_.empty() ? 0 : 1); }
  BatchNeeds Needs() const { return {schema_.total(), finite_cells(), mixed_}; }
  absl::Status Prepare(size_t examples);
  // What `why`, that there is no room for a batch, is to be told with.
  absl::Status NoRoom(size_t examples, const absl::Status& why);
  // The largest batch for which the device has room; 0: none.
  size_t LargestBatch(size_t below);
  // Points each layer at its weights and contributions: the host's, where the device shares them,
  // or their twins.
  void SetVectors(std::span<const float> weights, std::span<float> contribution, Home home);
  Examples ExamplesUp(const Batch& batch, size_t begin, size_t end);
  // The other labels and the share of a batch that is mixed.
  void OtherLabelsUp(const Batch& batch, Examples& examples);
  // Copies `host`; kernels that are queued behind AwaitUp() read it at `device`.
  void Up(std::span<const float> host, float* device);
  void AwaitUp();
  void WeightsUp(std::span<const ElementRange> elements);
  // What is copied down from now on is what kernels that are queued already leave there.
  void AwaitKernels();
  // Done when it has arrived on the host.
  StreamEvent ContributionDown(std::span<const ElementRange> elements);
  // The loss of the batch, into `loss_sums_`; dscores with the loss scale.
  absl::StatusOr<StreamEvent> LossDown(const Examples& examples, const float* scores,
                                       float* dscores);
  // The share of the labels' gradient, and the rest of that by the other labels.
  absl::Status MixLoss(const Examples& examples, const float* scores, float* dscores);
  // Waits until nothing is queued, whatever it comes to.
  void Drain();
  Pass PassOf(size_t node, size_t panel, size_t batch, bool training, const Draw& draw);
  const float* ValueOf(size_t value, const Examples& examples) const;
  // y += x, as one row.
  void Add(size_t count, const float* x, float* y);
  // Of a layer, one panel.
  void ForwardNode(size_t node, const Pass& pass, const Examples& examples);
  // Where nobody reads, for all of a node's contributions: those of averaged tensors have left.
  std::span<float* const> Discarding(size_t node);
  // Computes the values within the segment again: by the same weights, which have not left either.
  absl::Status ForwardAgain(const Segment& segment, const Examples& examples, const Draw& draw);
  // Of nodes where branches meet; backward, the gradient by one of the inputs.
  void ForwardJoin(size_t node, const Examples& examples);
  void BackwardJoin(const GradientStep& step, size_t which, size_t batch);
  // A layer is computed panel by panel or at once: how often, and Pass::panel each time.
  size_t Products(size_t node) const { return cuts_products_ ? panels_[node].size() : 1; }
  size_t PanelOf(size_t product) const { return cuts_products_ ? product : Pass::kWhole; }
  // The trained elements that one product gives.
  ElementRange TrainedBy(size_t node, size_t product) const;
  // Takes the loss scale out of these trained elements' contribution. Where they travel, also
  // checks whether all are finite: where the answer arrives, before they do. Else null.
  const float* LookOver(const ElementRange& elements, size_t cell);
  // The same check of the averaged elements.
  const float* LookOverAveraged();
  // Queues the copy of the cell's answer to the host; returns where it arrives.
  const float* FiniteDown(size_t cell);
  // Of a layer, panel by panel.
  absl::Status BackwardLayer(const GradientStep& step, const Examples& examples, const Draw& draw);
  // What the layer of a node has failed of.
  absl::Status FailureOf(size_t node) const;
  // Of any node; then adds up what its inputs' other readers have found.
  absl::Status BackwardStep(const GradientStep& step, const Examples& examples, const Draw& draw);
  // The scores.
  absl::StatusOr<const float*> Forward(const Examples& examples, bool training, const Draw& draw,
                                       TrainObserver& observer);
  // From the scores' gradient, which the loss has left.
  absl::Status Backward(const Examples& examples, const Draw& draw);
  absl::Status RunBatch(const Batch& batch, const Draw& draw, TrainObserver& observer);
  // Examples [begin, end), added up.
  absl::Status EvaluatePart(const Batch& batch, size_t begin, size_t end, Evaluation& evaluation);
  absl::StatusOr<double> TrainOnNothing(std::span<float> contribution, Home home,
                                        TrainObserver& observer);

  // Constant after Build.
  Backend& backend_;
  const std::unique_ptr<Loss> loss_;
  const Graph graph_;
  const bool mixed_;
  // By node.
  std::vector<std::vector<Placed>> tensors_;
  // At least one a node.
  std::vector<std::vector<Panel>> panels_;
  // As the backend has it: how layers are computed, while all copies are panel by panel.
  const bool cuts_products_;
  // Features are whole numbers below this; 0: any.
  uint64_t tokens_ = 0;
  // Of all layers' averaged tensors.
  std::vector<ElementRange> averaged_;
  v1::ModelSchema schema_;
  Flops flops_;

  // Of the call in progress.
  std::unique_ptr<Workspace> workspace_;
  // Weights and contribution travel, from and to these.
  bool travels_ = false;
  std::span<const float> host_weights_;
  std::span<float> host_contribution_;
  // The device's.
  float* contribution_ = nullptr;
  float loss_scale_ = 1;
  // A layer's (Pass::failure).
  absl::Status failure_;
  // The device's, by node and tensor.
  std::vector<std::vector<const float*>> weights_;
  std::vector<std::vector<float*>> contributions_;
  // Of the node that is computed again.
  std::vector<float*> discarding_;
  // On a page of its own, so that it can be pinned.
  struct alignas(4096) LossPage {
    BatchLoss loss;
  };
  std::unique_ptr<LossPage> page_ = std::make_unique<LossPage>();
  BatchLoss& loss_sums_ = page_->loss;
  PinnedMemory page_pinned_;
  // By part: whether its contribution is finite. Empty where contributions do not travel.
  FloatBuffer finite_;
  PinnedMemory finite_pinned_;
  // Something is on its way that no kernel waits for yet.
  bool going_up_ = false;
  // Kernels were queued that no copy down waits for yet.
  bool computing_ = false;
  Deliveries deliveries_;
};

}  // namespace leeway
