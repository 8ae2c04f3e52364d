// SPDX-License-Identifier: Apache-2.0
#include "perf/time_model.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "layout/schedules/table.hpp"

namespace nd::perf {

namespace {

/// FNV-1a over 64-bit words.
class WordHash {
 public:
  void add(std::int64_t word) { value_ = (value_ ^ static_cast<std::uint64_t>(word)) * 0x100000001b3ULL; }
  void add(const Placement& place) {
    add(place.ranks);
    for (const std::int64_t inside : place.inside) add(inside);
  }
  [[nodiscard]] std::size_t value() const { return value_ ^ (value_ >> 32U); }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

/// Share of the model's elements that are trained.
double trained_share(const Scenario& scenario) {
  if (!scenario.run.frozen_base) return 1.0;
  const ParameterCount count = count_parameters(scenario.model);
  const auto elements = static_cast<double>(count.total + count.mtp);
  return elements > 0 ? std::clamp(scenario.run.trained_parameters / elements, 0.0, 1.0) : 1.0;
}

LayerTraits traits_of(const LayerKind& kind) {
  return {.launched_per_layer = true,
          .experts = kind.ffn.kind == FfnKind::moe,
          .experts_per_token = kind.ffn.kind == FfnKind::moe ? kind.ffn.experts_per_token : 0};
}

constexpr LayerTraits kTable{.launched_per_layer = false};

/// Bounds sum in another order than the price; what that does to the last digits is far below this.
constexpr double kRounding = 1 - 1e-12;
/// Entries kept at a time. Searches visit degrees and shapes in order, so that what is dropped rarely comes back.
constexpr std::size_t kMostGroups = 16384, kMostShapes = 8192, kMostBounds = 65536, kExchanges = 4096;

/// Forward and backward of one micro-batch through the whole model; nothing recomputed.
double model_seconds(const ResolvedModel& model, const ShapeTimes& times) {
  const auto seconds = [](const LayerTime& time) { return time.forward.total() + time.backward.total(); };
  const auto mtp = static_cast<double>(model.mtp_depth);
  double sum = seconds(times.embedding) + (1.0 + mtp) * seconds(times.head);
  if (mtp > 0) sum += mtp * seconds(times.mtp);
  for (const int kind : model.layer_kind) sum += seconds(times.kinds[static_cast<std::size_t>(kind)]);
  return sum;
}

/// Whether the schedule runs the forward of one micro-batch with the backward of another.
bool joins_passes(Schedule schedule) { return schedule == Schedule::dualpipe || schedule == Schedule::dualpipe_v; }

/// Share of a layer's compute that token exchanges run behind: what the trainer does on its own, or all of it in joined passes.
double exchange_window(const TimeProfile& time, Schedule schedule) {
  return joins_passes(schedule) ? std::max(1.0, time.ep_overlap) : time.ep_overlap;
}

}  // namespace

std::size_t TimeModel::Hash::operator()(const DegreesKey& key) const {
  WordHash hash;
  for (const int word : key.value) hash.add(word);
  return hash.value();
}

std::size_t TimeModel::Hash::operator()(const LayoutKey& key) const {
  WordHash hash;
  for (const int word : key.value) hash.add(word);
  return hash.value();
}

std::size_t TimeModel::Hash::operator()(const ShapeKey& key) const {
  WordHash hash;
  hash.add(key.shape.seq_length);
  for (const int word : {key.shape.micro_batch_size, key.shape.tp, key.shape.cp, key.shape.ep, key.shape.etp,
                         key.shape.sequence_parallel ? 1 : 0, static_cast<int>(key.shape.cp_algorithm)})
    hash.add(word);
  for (const Placement* place : {&key.groups.tp, &key.groups.cp, &key.groups.ep, &key.groups.etp}) hash.add(*place);
  hash.add(std::bit_cast<std::int64_t>(key.exchange_window));
  return hash.value();
}

TimeModel::TimeModel(const Scenario& scenario)
    : scenario_(scenario), rates_(device_rates(scenario)), trained_share_(trained_share(scenario)), exchanges_(kExchanges) {
  if (scenario.model.tied_embeddings) table_elements_ = static_cast<double>(count_parameters(scenario.model).embedding);
}

const TimeModel::Groups& TimeModel::groups(const ParallelConfig& config) {
  const DegreesKey key{{config.dp, config.tp, config.pp, config.cp, config.ep, config.etp, config.op, static_cast<int>(config.zero)}};
  if (const auto known = groups_.find(key); known != groups_.end()) return known->second;
  const auto place = [&](GroupKind group) { return make_placement(layout::place_group(scenario_, config, group)); };
  Groups groups;
  groups.layer = {.tp = place(GroupKind::tp), .cp = place(GroupKind::cp), .ep = place(GroupKind::ep), .etp = place(GroupKind::etp)};
  groups.pipeline = place(GroupKind::pp);
  groups.data = data_parallel_plan(scenario_, config, trained_share_);
  groups.tied_table = tied_table_seconds(config, groups);
  return groups_.emplace(key, groups).first->second;
}

const ShapeTimes& TimeModel::shape_times(const ParallelConfig& config, const LayerPlacements& placements) {
  const ShapeKey key{layout::layer_shape(scenario_.run, config), placements, exchange_window(scenario_.profile.time, config.schedule)};
  if (const auto known = shapes_.find(key); known != shapes_.end()) return known->second;
  return shapes_.emplace(key, make_shape_times(key)).first->second;
}

ShapeTimes TimeModel::make_shape_times(const ShapeKey& key) const {
  const LayerShape& shape = key.shape;
  const ResolvedModel& model = scenario_.model;
  const ResolvedRun& run = scenario_.run;
  const FrameworkProfile& profile = scenario_.profile;
  const LayerContext context{.scenario = &scenario_,
                             .rates = &rates_,
                             .groups = key.groups,
                             .ring_steps = shape.cp > 1 && shape.cp_algorithm == CpAlgorithm::ring ? shape.cp : 0,
                             .ep_overlap = key.exchange_window};
  ShapeTimes times;
  for (const LayerKind& kind : model.kinds)
    times.kinds.push_back(layer_time(context, layer_ledger(model, kind, run, profile, shape), traits_of(kind)));
  times.embedding = layer_time(context, embedding_ledger(model, run, profile, shape), kTable);
  times.head = layer_time(context, head_ledger(model, run, profile, shape, true), kTable);
  const LayerLedger tied = head_ledger(model, run, profile, shape, false);
  times.tied_head_elements = tied.parameter_elements(ParameterClass::tensor) + tied.parameter_elements(ParameterClass::replicated);
  if (model.mtp_depth > 0) {
    const LayerKind& kind = model.kinds[static_cast<std::size_t>(model.mtp_kind)];
    times.mtp = layer_time(context, mtp_ledger(model, run, profile, shape), traits_of(kind));
  }
  times.model_seconds = model_seconds(model, times);
  // Every trainer sends each rank's share of the hidden state only (scatter-gather, or sequence parallelism).
  const double width = run.compute_dtype == Dtype::fp32 || run.compute_dtype == Dtype::tf32 ? 4.0 : 2.0;
  times.boundary_bytes = shape.tokens() * static_cast<double>(model.hidden_size) * width / shape.tp;
  return times;
}

void TimeModel::FoldedLayout::add(const layout::Chunk& chunk) {
  const auto known = std::find_if(chunks.begin(), chunks.end(), [&chunk](const layout::Chunk* other) { return *other == chunk; });
  chunk_of.push_back(static_cast<std::uint32_t>(known - chunks.begin()));
  if (known == chunks.end()) chunks.push_back(&chunk);
}

const TimeModel::FoldedLayout& TimeModel::folded_layout(const ParallelConfig& config) {
  const LayoutKey key{{config.pp, config.vpp, static_cast<int>(config.recompute), static_cast<int>(config.schedule)}};
  if (const auto known = layouts_.find(key); known != layouts_.end()) return known->second;
  FoldedLayout& folded = layouts_[key];
  folded.whole = layout::scheduled_layout(scenario_.model, scenario_.run, config);
  fold(config, folded.whole, folded);
  return folded;
}

void TimeModel::fold(const ParallelConfig& config, const layout::StageLayout& full, FoldedLayout& folded) const {
  folded.chunks.clear();
  folded.chunk_of.clear();
  folded.stages.clear();
  folded.balanced = full.balanced && scenario_.profile.time.balanced_layout;
  folded.chunks_per_stage = static_cast<int>(full.stages.front().size());
  folded.model_copies = layout::schedule_row(config.schedule).model_copies;
  for (const auto& stage : full.stages)
    for (const layout::Chunk& chunk : stage) folded.add(chunk);
  const auto v = static_cast<std::ptrdiff_t>(folded.chunks_per_stage);
  const auto chunks_of = [&](std::uint32_t stage) { return folded.chunk_of.begin() + static_cast<std::ptrdiff_t>(stage) * v; };
  for (std::uint32_t stage = 0; stage < static_cast<std::uint32_t>(config.pp); ++stage) {
    const auto known = std::find_if(folded.stages.begin(), folded.stages.end(), [&](std::uint32_t other) {
      return std::equal(chunks_of(stage), chunks_of(stage) + v, chunks_of(other));
    });
    if (known == folded.stages.end()) folded.stages.push_back(stage);
  }
}

ChunkTime TimeModel::stage_time(const FoldedLayout& layout, std::size_t stage) const {
  const auto count = static_cast<std::size_t>(layout.chunks_per_stage);
  ChunkTime sum;
  for (std::size_t chunk = 0; chunk < count; ++chunk) sum.add(chunk_times_[layout.chunk_of[stage * count + chunk]]);
  return sum;
}

void TimeModel::price_chunks(const FoldedLayout& layout, const ShapeTimes& times, const Groups& groups) {
  chunk_times_.clear();
  for (const layout::Chunk* chunk : layout.chunks)
    chunk_times_.push_back(chunk_time(*chunk, times, groups.data, scenario_.model.tied_embeddings));
}

PipelineWork TimeModel::pipeline_work() {
  chunk_seconds_.clear();
  for (const std::uint32_t chunk : at_->layout->chunk_of) chunk_seconds_.push_back(chunk_times_[chunk].seconds);
  PipelineWork work{.schedule = at_->config.schedule,
                    .shape = schedule_shape(at_->config),
                    .chunks_per_stage = at_->layout->chunks_per_stage,
                    .chunks = chunk_seconds_,
                    .model_copies = at_->layout->model_copies,
                    .balanced = at_->layout->balanced};
  if (at_->config.pp > 1) {
    work.hop = message_seconds(at_->groups->pipeline, at_->shape->boundary_bytes);
    // Megatron-LM overlaps by default where there are several chunks a stage, and cannot with one (arguments.py, overlap_p2p_comm).
    const TimeProfile& time = scenario_.profile.time;
    work.hop_exposed = !time.p2p_overlap && !(time.supports_overlap_p2p && at_->config.vpp > 1);
  }
  return work;
}

// The busiest stage's passes keep their parts; whatever else the pipeline takes is the bubble and what messages add. Of the
// messages of a stage in between, two per chunk and micro-batch, the rest is hidden.
PartSeconds TimeModel::pipeline_parts() {
  const FoldedLayout& layout = *at_->layout;
  const PipelineWork work = pipeline_work();
  const PipelineSeconds pipeline = replay_.run(work);
  PartSeconds parts;
  const double micro_batches = static_cast<double>(work.shape.micro_batches) / layout.model_copies;
  if (pipeline.busiest == kNoStage) {
    for (std::size_t stage = 0; stage < static_cast<std::size_t>(work.shape.stages); ++stage)
      parts.add(stage_time(layout, stage).parts, micro_batches * kBalancedPace / work.shape.stages);
  } else {
    parts.add(stage_time(layout, static_cast<std::size_t>(pipeline.busiest)).parts, micro_batches);
  }
  if (work.shape.stages == 1) return parts;
  parts.at(TimePart::bubble) += pipeline.makespan - pipeline.busy;
  parts.at(TimePart::pp_comm) += pipeline.messages;
  parts.hidden_at(TimePart::pp_comm) += std::max(0.0, 2 * work.hop * micro_batches * layout.chunks_per_stage - pipeline.messages);
  return parts;
}

double TimeModel::message_seconds(const Placement& pipeline, double bytes) const {
  const CollectiveRequest request{.kind = CollectiveKind::send_receive, .bytes = bytes, .group = pipeline};
  return collective_seconds(request, scenario_.cluster.device.levels);
}

// First and last stage each hold a copy of a tied table and add up its gradients.
double TimeModel::tied_table_seconds(const ParallelConfig& config, const Groups& groups) const {
  if (config.pp == 1 || table_elements_ <= 0) return 0;
  Placement ends = groups.pipeline;
  ends.ranks = 2;
  for (auto& inside : ends.inside) inside = inside == groups.pipeline.ranks ? 2 : 1;
  const double bytes = table_elements_ * trained_share_ / config.tp * scenario_.profile.time.reduce_bytes;
  return collective_seconds({.kind = CollectiveKind::all_reduce, .bytes = bytes, .group = ends}, scenario_.cluster.device.levels);
}

// What happens once per step. The stage with the most of it decides, because the next step needs all of them.
PartSeconds TimeModel::step_parts(const Groups& groups) {
  PartSeconds worst;
  for (const ChunkTime& time : stage_times_) {
    PartSeconds parts = step_exchange_of(groups.data, exchange(groups, time.elements), time.seconds.backward, time.seconds.forward);
    parts.at(TimePart::optimizer) = optimizer_seconds(groups.data, time.elements, rates_.memory);
    if (parts.total() > worst.total()) worst = parts;
  }
  worst.at(TimePart::dp_reduce) += groups.tied_table;
  worst.at(TimePart::other) += scenario_.profile.time.step_overhead_ms * 1e-3;
  return worst;
}

const ExchangeSeconds& TimeModel::exchange(const Groups& groups, const Elements& elements) {
  WordHash hash;
  hash.add(std::bit_cast<std::int64_t>(elements.dense));
  hash.add(std::bit_cast<std::int64_t>(elements.expert));
  hash.add(std::bit_cast<std::int64_t>(&groups));
  KnownExchange& known = exchanges_[hash.value() % kExchanges];
  const auto same = [](double a, double b) { return !(a < b) && !(b < a); };
  if (known.groups != &groups || !same(known.elements.dense, elements.dense) || !same(known.elements.expert, elements.expert))
    known = {.groups = &groups, .elements = elements, .seconds = exchange_seconds(groups.data, elements)};
  return known.seconds;
}

void TimeModel::bound_tables() {
  if (groups_.size() < kMostGroups && shapes_.size() < kMostShapes) return;
  groups_.clear();
  shapes_.clear();
  exchanges_.assign(kExchanges, {});
  at_.reset();
}

bool TimeModel::move_to(const ParallelConfig& config) {
  bound_tables();
  const ParallelConfig last = at_ ? at_->config : ParallelConfig{};
  const bool same_shape = at_ && last.dp == config.dp && last.tp == config.tp && last.pp == config.pp && last.cp == config.cp &&
                          last.ep == config.ep && last.etp == config.etp && last.micro_batch_size == config.micro_batch_size &&
                          last.sequence_parallel == config.sequence_parallel && last.cp_algorithm == config.cp_algorithm &&
                          joins_passes(last.schedule) == joins_passes(config.schedule);
  const bool same_pipeline = same_shape && last.micro_batch_num == config.micro_batch_num && last.vpp == config.vpp &&
                             last.schedule == config.schedule && last.seq_split == config.seq_split && last.micro_batch_group == config.micro_batch_group &&
                             last.recompute == config.recompute;
  // Sharded weights are gathered within the passes; everything else about the sharding happens once per step.
  const bool within_passes = config.zero == ZeroLevel::parameters || last.zero == ZeroLevel::parameters;
  if (!at_) at_ = Prepared{};  // clang 14 has no emplace() for a member class with defaults
  at_->config = config;
  at_->groups = &groups(config);
  if (!same_shape) at_->shape = &shape_times(config, at_->groups->layer);
  return same_pipeline && !within_passes;
}

void TimeModel::price_passes(const FoldedLayout& layout) {
  at_->layout = &layout;
  price_chunks(layout, *at_->shape, *at_->groups);
  stage_times_.clear();
  for (const std::uint32_t stage : layout.stages) stage_times_.push_back(stage_time(layout, stage));
  at_->passes.reset();
  at_->passes_at_least.reset();
}

void TimeModel::prepare(const ParallelConfig& config) {
  const bool planned = at_ && at_->layout == &planned_;
  if (at_ && at_->config == config && !planned) return;
  if (!move_to(config) || planned) price_passes(folded_layout(config));
  at_->once = step_parts(*at_->groups);
}

void TimeModel::prepare(const ParallelConfig& config, const layout::StageLayout& layout) {
  move_to(config);
  fold(config, layout, planned_);
  price_passes(planned_);
  at_->once = step_parts(*at_->groups);
}

Seconds TimeModel::at_least(const ParallelConfig& config) {
  prepare(config);
  return at_least_prepared();
}

Seconds TimeModel::at_least(const ParallelConfig& config, const layout::StageLayout& layout) {
  prepare(config, layout);
  return at_least_prepared();
}

// Recomputation makes passes longer only. It may also hide more of the exchange behind them: that is left out.
Seconds TimeModel::at_least_any_mode(ParallelConfig config) {
  config.recompute = Recompute::off;
  const Seconds kept = at_least(config);
  return {kept.value - at_->once.at(TimePart::dp_reduce) - at_->once.at(TimePart::dp_comm)};
}

Seconds TimeModel::at_least_prepared() {
  if (!at_->passes_at_least) at_->passes_at_least = replay_.at_least(pipeline_work());
  // Sums in another order than those of estimate() may differ in the last digits.
  return {kRounding * (*at_->passes_at_least + at_->once.total())};
}

void TimeModel::mode_seconds(const ParallelConfig& config, std::vector<ModeSeconds>& out) {
  const Groups& degrees = groups(config);
  const ShapeTimes& times = shape_times(config, degrees.layer);
  const auto by_mode = [&degrees](const LayerTime& layer) {
    ModeSeconds seconds{};
    for (std::size_t mode = 0; mode < kLayerModes; ++mode) seconds[mode] = layer_seconds(layer, static_cast<Recompute>(mode), degrees.data);
    return seconds;
  };
  out.clear();
  for (const LayerTime& layer : times.kinds) out.push_back(by_mode(layer));
  out.push_back(by_mode(times.mtp));
}

// Some stage has at least the mean of the work, and works on all micro-batches one after the other. Recompute, parameter sharding
// and messages only add; token exchanges are shortest in the schedules that join passes.
Seconds TimeModel::group_at_least(const ParallelConfig& head) {
  bound_tables();
  if (model_seconds_.size() >= kMostBounds) model_seconds_.clear();
  ParallelConfig joined = head;
  if (head.ep > 1) joined.schedule = Schedule::dualpipe_v;
  const ShapeKey key{layout::layer_shape(scenario_.run, joined), groups(joined).layer, exchange_window(scenario_.profile.time, joined.schedule)};
  const auto [found, fresh] = model_seconds_.try_emplace(key, 0.0);
  // Shapes that are only bounded do not push those that are priced out of their table.
  if (fresh) found->second = make_shape_times(key).model_seconds;
  return {kRounding * (found->second * head.micro_batch_num / head.pp + scenario_.profile.time.step_overhead_ms * 1e-3)};
}

void TimeModel::estimate(const ParallelConfig& config, TimeBreakdown& out) {
  prepare(config);
  estimate_again(out);
}

void TimeModel::estimate(const ParallelConfig& config, const layout::StageLayout& layout, TimeBreakdown& out) {
  prepare(config, layout);
  estimate_again(out);
}

void TimeModel::estimate_again(TimeBreakdown& out) {
  if (!at_->passes) at_->passes = pipeline_parts();
  PartSeconds step = *at_->passes;
  step.add(at_->once);

  out.step = {step.total()};
  for (std::size_t part = 0; part < kTimePartCount; ++part) {
    out.exposed[part] = {step.exposed[part]};
    out.hidden[part] = {step.hidden[part]};
  }
}

}  // namespace nd::perf
