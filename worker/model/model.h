// A model: layers over one flat vector of weights, trained a batch at a time.
//
// Workers and servers exchange the flat vector of float32 values. All trained tensors come first,
// in the order of the layers. All averaged tensors follow: batch normalisation's running
// statistics. schema() names each tensor.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/blocks.h"
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
#include "worker/model/model_layout.h"
#include "worker/model/regression_error.h"
#include "worker/model/step_vectors.h"
#include "worker/model/train_observer.h"
#include "worker/model/transfers.h"
#include "worker/model/workspace.h"

namespace leeway {

// Holds no weights, because each call takes them as an argument. Not thread-safe.
class Model {
 public:
  using Draw = leeway::Draw;
  struct Evaluation {
    double loss_sum = 0;
    // The number of labels. An example has one label, or one label for each position.
    uint64_t labels = 0;
    // The number of labels whose class had the highest score, and the number of labels whose class
    // was among the five highest scores (softmax only). Both are 0 for a squared loss.
    uint64_t correct = 0;
    uint64_t in_top5 = 0;
    uint64_t examples = 0;
    // The error of the predictions. Set for a squared loss only.
    RegressionError error = {};
  };
  // The number of floating-point operations of the matrix products for one example. `backward`
  // excludes the gradient of the first trained layer's input, which is not needed.
  struct Flops {
    double forward = 0;
    double backward = 0;
  };

  // Builds the layers of `config` for examples of shape `input`. Each example has `labels` labels.
  // Labels are numbers if `classes` is 0, otherwise classes below `classes`. If an example has
  // several labels, the scores have one position for each label. If `mixed` is true, training
  // batches may have other labels, too (batch.h). The backend must outlive the model. Returns
  // INVALID_ARGUMENT at the key of the layer that does not fit (common/job_key.h).
  static absl::StatusOr<std::unique_ptr<Model>> Build(const v1::Model& config,
                                                      const ImageShape& input, uint32_t classes,
                                                      Backend& backend, size_t labels = 1,
                                                      bool mixed = false);

  Backend& backend() const { return backend_; }
  const v1::ModelSchema& schema() const { return layout_.schema(); }
  Flops flops() const;

  // Returns true if there are enough classes for the five highest scores to be meaningful.
  bool tells_top5() const { return graph_.scores().channels > 10; }

  // Returns the layers, and the nodes where branches meet.
  const Graph& graph() const { return graph_; }

  // Returns the memory for a batch of this size, without the caller's vectors. If `own_memory` is
  // true, the plan is for a device with its own memory, which also holds copies of weights and
  // contribution. The scratch size is what this backend needs.
  MemoryPlan PlanMemory(size_t examples, bool own_memory) const;
  // Allocates memory for batches of this size now, rather than at the first batch. Returns
  // RESOURCE_EXHAUSTED, naming the layer that takes the most memory and the batch size that fits.
  absl::Status Reserve(size_t examples) { return Prepare(examples); }

  // Writes the initial weights [schema().total]. They are a pure function of the seed.
  void Initialize(uint64_t seed, std::span<float> weights) const {
    layout_.Initialize(seed, weights);
  }

  // Runs the forward and the backward pass over the batch. Returns the sum of the examples' losses,
  // where an example's loss is the mean over its labels. Writes the contribution [schema().total]:
  // the trained elements get the gradient of the batch's mean loss, and the averaged elements get
  // the batch's own statistics. For an empty batch the sum and the contribution are 0. A loss or
  // gradient that is not finite is not an error here. Returns INVALID_ARGUMENT for labels or sizes
  // that do not fit, and RESOURCE_EXHAUSTED for lack of memory; the contribution is then unchanged.
  //
  // `home` says whether weights and contribution are in the host's or in the device's memory.
  // `loss_scale` scales the loss for the backward pass (step_vectors.h). The scale changes the
  // contribution only by rounding, or by overflow to infinity.
  //
  // The observer is called layer by layer, and for large layers panel by panel (layer.h). Weights
  // are copied to a device with its own memory once the observer has allowed reading them. Elements
  // are reported as final once they have been copied back to the host. When Train returns, with or
  // without an error, the device has finished. The observer does not affect the result: the bits
  // are the same without it. Train returns the observer's error unchanged; a device's error
  // (Backend::status) names what failed.
  absl::StatusOr<double> Train(const Batch& batch, std::span<const float> weights, const Draw& draw,
                               std::span<float> contribution, TrainObserver* observer = nullptr,
                               Home home = Home::kHost, float loss_scale = 1);

  // Returns the largest number of examples that Evaluate computes at once. Evaluate divides larger
  // batches.
  size_t evaluated_at_a_time() const;
  // Runs the forward pass only, with running statistics and without dropout. Returns the same
  // errors as Train.
  absl::StatusOr<Evaluation> Evaluate(const Batch& batch, std::span<const float> weights);

 private:
  // A batch's examples on the device.
  struct Examples {
    size_t count = 0;
    const float* features = nullptr;
    const float* labels = nullptr;
    // The other labels. Null unless the batch is mixed.
    const float* other_labels = nullptr;
    float share = 1;
  };

  Model(Backend& backend, std::unique_ptr<Loss> loss, Graph graph, ModelLayout layout, bool mixed)
      : backend_(backend),
        loss_(std::move(loss)),
        graph_(std::move(graph)),
        layout_(std::move(layout)),
        mixed_(mixed),
        transfers_(backend, layout_.finite_cells()),
        deliveries_(backend) {}

  absl::Status Check(const Batch& batch, size_t weights) const;
  absl::Status CheckOtherLabels(const Batch& batch) const;
  // Checks that the features are tokens, if a layer reads tokens.
  absl::Status CheckTokens(std::span<const float> features) const;
  BatchNeeds Needs() const { return {layout_.total(), layout_.finite_cells(), mixed_}; }
  absl::Status Prepare(size_t examples);
  // Adds advice to `why`, the error for a batch that does not fit in memory, and returns it.
  absl::Status NoRoom(size_t examples, const absl::Status& why);
  // Returns the largest batch size below `below` that fits in the device's memory, or 0 if no size
  // does.
  size_t LargestBatch(size_t below);
  // Points each layer at its weights and contributions. They are the host's vectors if the device
  // shares the host's memory, otherwise the device's copies.
  void SetVectors(std::span<const float> weights, std::span<float> contribution, Home home);
  Examples ExamplesUp(const Batch& batch, size_t begin, size_t end);
  // Copies the other labels of a mixed batch, and sets its share.
  void OtherLabelsUp(const Batch& batch, Examples& examples);
  // Queues the copy of these elements to the host. The returned event is done when they have
  // arrived.
  StreamEvent ContributionDown(std::span<const ElementRange> elements);
  // Computes the batch's loss into transfers_.loss(), and the gradient `dscores` with the loss
  // scale.
  absl::StatusOr<StreamEvent> LossDown(const Examples& examples, const float* scores,
                                       float* dscores);
  // Combines the gradients for the labels and for the other labels, weighted by their shares.
  absl::Status MixLoss(const Examples& examples, const float* scores, float* dscores);
  Pass PassOf(size_t node, size_t panel, size_t batch, bool training, const Draw& draw);
  const float* ValueOf(size_t value, const Examples& examples) const;
  // Computes y += x, as one row.
  void Add(size_t count, const float* x, float* y);
  // Computes one panel of a layer.
  void ForwardNode(size_t node, const Pass& pass, const Examples& examples);
  // Returns memory for the contributions of a node's averaged tensors when the node is computed
  // again. Nothing reads this memory, because these contributions have already been sent.
  std::span<float* const> Discarding(size_t node);
  // Computes the values within the segment again, with the same weights and draws.
  absl::Status ForwardAgain(const Segment& segment, const Examples& examples, const Draw& draw);
  // These functions compute nodes where branches meet. BackwardJoin computes the gradient of one of
  // the inputs.
  void ForwardJoin(size_t node, const Examples& examples);
  void BackwardJoin(const GradientStep& step, size_t which, size_t batch);
  // The backend decides whether a layer is computed panel by panel or at once. Copies are always
  // panel by panel. Products returns the number of products of a node. PanelOf returns the value of
  // Pass::panel for a product.
  size_t Products(size_t node) const {
    return backend_.cuts_products() ? layout_.panels(node).size() : 1;
  }
  size_t PanelOf(size_t product) const { return backend_.cuts_products() ? product : Pass::kWhole; }
  // Returns the trained elements whose gradient one product computes.
  ElementRange TrainedBy(size_t node, size_t product) const;
  // Divides the contribution of these trained elements by the loss scale. If contributions are
  // copied to the host, also checks whether all values are finite, and returns the host address of
  // the answer, which arrives before the values do. Otherwise returns null.
  const float* LookOver(const ElementRange& elements, size_t cell);
  // Does the same as LookOver for the averaged elements.
  const float* LookOverAveraged();
  // Computes a layer's backward pass, panel by panel.
  absl::Status BackwardLayer(const GradientStep& step, const Examples& examples, const Draw& draw);
  // Returns the failure of the node's layer.
  absl::Status FailureOf(size_t node) const;
  // Computes the backward step of a node of any kind, then adds the gradients from the other
  // readers of the node's inputs.
  absl::Status BackwardStep(const GradientStep& step, const Examples& examples, const Draw& draw);
  // Runs the forward pass. Returns the scores.
  absl::StatusOr<const float*> Forward(const Examples& examples, bool training, const Draw& draw,
                                       TrainObserver& observer);
  // Runs the backward pass. It begins with the gradient of the scores, which the loss has written.
  absl::Status Backward(const Examples& examples, const Draw& draw);
  absl::Status RunBatch(const Batch& batch, const Draw& draw, TrainObserver& observer);
  absl::Status EvaluatePart(const Batch& batch, size_t begin, size_t end, Evaluation& evaluation);
  absl::StatusOr<double> TrainOnNothing(std::span<float> contribution, Home home,
                                        TrainObserver& observer);

  // These fields are constant after Build.
  Backend& backend_;
  const std::unique_ptr<Loss> loss_;
  const Graph graph_;
  const ModelLayout layout_;
  const bool mixed_;

  // The following fields are the state of the call in progress.
  std::unique_ptr<Workspace> workspace_;
  Transfers transfers_;
  Deliveries deliveries_;
  // The contribution in the device's memory.
  float* contribution_ = nullptr;
  float loss_scale_ = 1;
  // The failure of a layer (Pass::failure).
  absl::Status failure_;
  // The weights in the device's memory, for each node and tensor.
  std::vector<std::vector<const float*>> weights_;
  std::vector<std::vector<float*>> contributions_;
  // The contributions that Discarding returns for the node that is computed again.
  std::vector<float*> discarding_;
};

}  // namespace leeway
