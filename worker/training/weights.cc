// The steps of an exchange of weights: a worker trains by itself, and exchanges at the end of each
// clock (exchange/weights.cc does so for other programs).
//
// delta: the contribution is the change of the weights over H local steps, x_start - x_end,
// weighted by the examples seen. With sync mode, and sgd with learning rate 1 on the servers, this
// is local SGD (Stich 2019) and FedAvg (McMahan et al. 2017, algorithm 1). With momentum or Adam on
// the servers it is FedAvgM and FedAdam (Reddi et al. 2021, algorithm 2). With Nesterov on the
// servers and AdamW in the worker it is DiLoCo (Douillard et al. 2023, algorithm 1). Averaged
// elements hold the weighted mean of the clock's own batches, and that mean is sent
// (common/update/averaging.h).
//
// elastic: EASGD, or EAMSGD if the local optimizer has momentum (Zhang, Choromanska, LeCun 2015,
// arXiv:1412.6651, algorithms 1 and 2). The worker keeps its own weights x. Every tau local steps,
// x and the centre c pull at each other with the same force e = alpha (x - c):
//   c += e on the server, x -= e in the worker.
// The server answers with the centre before its update, so server and worker use the same c in one
// round trip. Averaged elements hold running values. The force applies to them as it does to the
// weights.
//
// The local optimizer's slots are kept between clocks.

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "common/buffer.h"
#include "common/status.h"
#include "exchange/weight_formulas.h"
#include "worker/compute/flat_vector.h"
#include "worker/training/clock_runner.h"
#include "worker/training/local_runner.h"
#include "worker/training/steps.h"

namespace leeway {
namespace {

class WeightRunner : public LocalRunner {
 public:
  // Each vector is as long as the model. `answered` is empty if the training keeps it.
  WeightRunner(const RunnerContext& context, LocalTraining training, FlatVector answered,
               FlatVector scratch, FlatVector change)
      : LocalRunner(context, std::move(training)),
        averages_(LocalAverages(context.schema, std::numeric_limits<double>::infinity())),
        answered_(std::move(answered)),
        scratch_(std::move(scratch)),
        change_(std::move(change)) {}

  // Without a saved state an elastic worker starts at the centre. At clock 0 the centre is the
  // initial weights.
  absl::StatusOr<uint64_t> Begin(uint64_t clock) override {
    Carrier& carrier = context().carrier;
    if (keeps_answer() && training().loaded()) {
      // The worker goes on from its own weights, which the carrier reads on the host.
      RETURN_IF_ERROR(answered().Down());
      return ReadWeights(carrier, clock, change_.host());
    }
    ASSIGN_OR_RETURN(const uint64_t version, ReadWeights(carrier, clock, answered().host()));
    RETURN_IF_ERROR(answered().Up());
    const bool begins_anew = alpha() ? !training().loaded() : keeps_answer();
    if (!begins_anew) return version;
    if (alpha()) GoBack();
    training().Keep(clock);
    return version;
  }

  absl::StatusOr<ClockReport> Run(const ClockSpan& span) override {
    ClockReport report;
    if (!alpha()) {
      context().carrier.Renew();
      GoBack();
    }
    for (uint64_t i = 0; i < span.steps && !report.none_left; ++i) {
      for (LocalAverage& average : averages_) {
        if (!alpha()) average.batches_before = Batches(context(), report.examples);
      }
      RETURN_IF_ERROR(training()
                          .Step(span.clock, span.first_step + i, local().device(),
                                gradient().device(), averages_, report)
                          .status());
    }
    const ElementRange all{0, answered().size()};
    float* const x = local().device().data();
    const float* const answer = answered().device().data();
    if (!alpha()) {
      MakeDelta(backend(), all, context().schema.trained(), answer, x, sent().device().data());
    }
    ASSIGN_OR_RETURN(const bool known_finite, training().KnownFinite(sent().device()));
    RETURN_IF_ERROR(ExchangeAll(context(), span.clock, report.examples,
                                alpha() ? "the local weight" : "the change", known_finite, sent(),
                                answered()));
    if (alpha()) MoveToCentre(backend(), all, *alpha(), x, answer, x);
    training().Keep(span.clock + 1);
    return report;
  }

 private:
  // A worker with weights of its own keeps the answer, because it is these weights.
  FlatVector& answered() override { return keeps_answer() ? training().own(0) : answered_; }
  bool keeps_answer() const { return !alpha() && context().carrier.keeps_weights(); }
  // The local weights. An elastic worker keeps them, and sends them as they are. A delta worker
  // starts each clock at the servers' answer. It writes the change that it sends into the memory of
  // the last gradient.
  FlatVector& local() { return alpha() ? training().own(0) : scratch_; }
  FlatVector& sent() { return alpha() ? training().own(0) : change_; }
  FlatVector& gradient() { return alpha() ? scratch_ : change_; }

  void GoBack() {
    backend().Copy(answered().size(), answered().device().data(), local().device().data());
  }

  std::vector<LocalAverage> averages_;
  // The servers' latest answer: x_start of a delta worker's next clock, or the centre.
  FlatVector answered_;
  FlatVector scratch_;
  // Empty for elastic.
  FlatVector change_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ClockRunner>> MakeWeightRunner(const RunnerContext& context) {
  const size_t total = context.schema.total();
  ASSIGN_OR_RETURN(LocalOptimizer optimizer,
                   LocalOptimizer::Make(context.job, context.schema, context.length));
  ASSIGN_OR_RETURN(FlatVector sent,
                   FlatVector::Twins(context.backend, context.carrier.MakeVector()));
  LocalTraining::Own own{.exchange = "delta"};
  if (context.job.exchange().has_elastic()) {
    own = {.exchange = "elastic", .names = {"weights"}};
    own.vectors.push_back(std::exchange(sent, FlatVector()));
  }
  ASSIGN_OR_RETURN(FlatVector answered, FlatVector::Twins(context.backend, FloatBuffer(total)));
  if (!context.job.exchange().has_elastic() && context.carrier.keeps_weights()) {
    own.names = {"weights"};
    own.vectors.push_back(std::exchange(answered, FlatVector()));
  }
  ASSIGN_OR_RETURN(LocalTraining training,
                   LocalTraining::Make(context, std::move(optimizer), std::move(own)));
  ASSIGN_OR_RETURN(FlatVector scratch, FlatVector::OnDevice(context.backend, total));
  return std::make_unique<WeightRunner>(context, std::move(training), std::move(answered),
                                        std::move(scratch), std::move(sent));
}

}  // namespace leeway
