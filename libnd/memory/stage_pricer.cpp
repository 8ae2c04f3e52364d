// SPDX-License-Identifier: Apache-2.0
#include "memory/stage_pricer.hpp"

#include <algorithm>
#include <numeric>

namespace nd::memory {

namespace {

constexpr double kFp32Bytes = 4;      // bytes of one fp32 element
constexpr double kComputeBytes = 2;   // bytes of one gradient element in the compute type
constexpr double kMaskBytes = 1;      // bytes of one element of a boolean mask
constexpr double kUsualWorkspace = 32.0 * 1024 * 1024;  // bytes per stream on Hopper and newer
constexpr double kBucketsAlive = 2;   // DeepSpeed: one bucket fills while the other is reduced

constexpr std::size_t index(Recompute mode) { return static_cast<std::size_t>(mode); }

/// The bill of one instant.
struct InstantBill {
  Instant instant = Instant::backward;
  ItemBytes items;
  bool keeps_activations = false;
  bool has_gradients = true;
  bool steady_moments = true;  ///< optimizer states exist at this instant in every step but the first
};

class StagePricer {
 public:
  StagePricer(const StageInput& input, ReadingTime reading, StagePrice& out)
      : in_(input), memory_(input.scenario.profile.memory), reading_(reading), out_(out) {}

  void prepare() {
    out_.content = stage_content(in_.scenario.model, in_.shape, in_.chunks);
    keep_activations();
    out_.distinct_weights = memory_.cached_weight_gradients ? distinct_weight_elements() : 0;
  }

  void price() {
    out_.memory = StageMemory{};
    out_.memory.stage = in_.stage;
    out_.held.fill(0);
    out_.trained_elements = 0;
    states();
    static_items();
    loss();
    backward();
    end_of_backward();
    optimizer_step();
    mask_creation();
  }

 private:
  [[nodiscard]] const StageContent& content() const { return out_.content; }

  // --- Static part -----------------------------------------------------------------------------------------------------

  void states() {
    const StateRates& rates = in_.rates;
    const ElementCount& elements = content().elements;
    parameters_ = StateRates::sum(elements, rates.weight, rates.weight_matrix);
    gradients_ = StateRates::sum(elements, rates.gradient);
    main_ = StateRates::sum(elements, rates.main);
    moments_ = StateRates::sum(elements, rates.moments, rates.moments_matrix);
    if (!in_.scenario.run.frozen_base) return;
    // Adapters sit in the layers; of each pair of factors one is divided by tp.
    const double layers = std::max(1.0, static_cast<double>(in_.scenario.model.layers()));
    const double divided = (1.0 + 1.0 / in_.config.tp) / 2.0;
    out_.trained_elements = in_.scenario.run.trained_parameters * content().layers / layers * divided;
    parameters_ += out_.trained_elements * rates.adapter_weight;
    gradients_ += out_.trained_elements * rates.adapter_gradient;
    moments_ += out_.trained_elements * rates.adapter_moments;
  }

  void static_items() {
    // The profile's figures hold where the product library asks for 32 MiB a stream; one such buffer is in the base.
    const double asked = in_.scenario.cluster.device.memory.product_workspace.value;
    static_[Item::base_workspace] = std::max(0.0, memory_.base_workspace_gib * kGiB - (kUsualWorkspace - asked));
    if (content().body.all[static_cast<std::size_t>(ParameterClass::expert)] > 0)
      static_[Item::grouped_workspace] = memory_.grouped_gemm_workspace_gib * kGiB * asked / kUsualWorkspace;
    if (memory_.cached_weight_gradients && !in_.scenario.run.frozen_base)
      static_[Item::cached_weight_gradients] = kComputeBytes * out_.distinct_weights;
    if (eight_bit_products() && !in_.scenario.run.frozen_base) {
      const auto& matrices = content().body.matrix;
      static_[Item::fp8_weights] = memory_.fp8_weight_bytes * std::accumulate(matrices.begin(), matrices.end(), 0.0);
    }
    static_[Item::buckets] = std::min(memory_.bucket_bytes, kBucketsAlive * kComputeBytes * content().elements.total());
  }

  [[nodiscard]] bool eight_bit_products() const {
    return in_.scenario.run.gemm_dtype == Dtype::fp8 || in_.scenario.run.gemm_dtype == Dtype::fp4;
  }

  /// Elements of one buffer per distinct weight shape: a matrix of equal name and size in two layer kinds counts once.
  [[nodiscard]] double distinct_weight_elements() const {
    double sum = 0;
    const auto& kinds = in_.shape.kinds;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      if (!on_stage(k)) continue;
      for (const WeightShape& shape : kinds[k].weight_shapes()) {
        bool known = false;
        for (std::size_t other = 0; other < k && !known; ++other)
          known = on_stage(other) && std::ranges::any_of(kinds[other].weight_shapes(), [&shape](const WeightShape& seen) {
            return seen.op == shape.op && !(seen.elements < shape.elements) && !(seen.elements > shape.elements);
          });
        if (!known) sum += shape.elements;
      }
    }
    return sum;
  }
  [[nodiscard]] bool on_stage(std::size_t kind) const {
    return std::ranges::any_of(in_.chunks, [kind](const layout::Chunk& chunk) { return chunk.layers_by_kind[kind] > 0; });
  }

  // --- Activations -----------------------------------------------------------------------------------------------------

  void keep_activations() {
    out_.chunk_bytes.resize(in_.chunks.size());
    out_.counts.resize(in_.chunks.size());
    for (std::size_t c = 0; c < in_.chunks.size(); ++c) out_.chunk_bytes[c] = chunk_bytes(in_.chunks[c]);
    if (runs_forwards_first()) {
      std::ranges::fill(out_.counts, static_cast<double>(in_.config.micro_batch_num));
    } else {
      std::ranges::copy(in_.front.heaviest(out_.chunk_bytes), out_.counts.begin());
    }
    out_.activations = out_.in_flight = out_.logit_sets = 0;
    for (std::size_t c = 0; c < in_.chunks.size(); ++c) {
      out_.activations += out_.counts[c] * out_.chunk_bytes[c];
      out_.in_flight += out_.counts[c] / static_cast<double>(in_.chunks.size());
      if (in_.chunks[c].head) out_.logit_sets = std::max(1.0, out_.counts[c]);
    }
  }

  [[nodiscard]] bool runs_forwards_first() const {
    return memory_.interleaved_forwards_first && in_.config.schedule == Schedule::interleaved &&
           in_.config.micro_batch_num == in_.config.pp;
  }

  /// Bytes one micro-batch leaves in a chunk. docs/cost_model_memory.md#memory-activations.
  [[nodiscard]] double chunk_bytes(const layout::Chunk& chunk) const {
    double bytes = 0;
    for (std::size_t k = 0; k < chunk.layers_by_kind.size(); ++k)
      bytes += static_cast<double>(chunk.layers_by_kind[k]) * recompute_shares(chunk, k).mix(in_.shape.kinds[k].saved);
    const auto mtp = static_cast<double>(chunk.mtp_blocks);
    if (mtp > 0) bytes += mtp * mtp_shares(chunk, in_.config.recompute).mix(in_.shape.mtp.saved);
    if (chunk.embedding) bytes += in_.shape.embedding.saved[index(Recompute::off)];
    if (chunk.head) bytes += (1.0 + mtp) * head().saved[index(Recompute::off)];
    return bytes;
  }
  [[nodiscard]] const LedgerSummary& head() const { return head_summary(in_.scenario.model, in_.shape, content().has_embedding); }

  // --- Instants --------------------------------------------------------------------------------------------------------

  void loss() {
    if (!content().has_head) return;
    InstantBill bill{.instant = Instant::loss, .items = static_, .keeps_activations = true, .has_gradients = gradients_persist()};
    bill.items[Item::logits] = out_.logit_sets * logit_set();
    if (memory_.cached_weight_gradients) bill.items[Item::head_weight_gradient] = kComputeBytes * content().head.total();
    gathered(bill.items, memory_.gathered_layers);
    table_unit(bill.items, content().head);
    between_micro_batches(bill.items);
    consider(bill);
  }

  void backward() {
    InstantBill bill{.instant = Instant::backward, .items = static_, .keeps_activations = true, .has_gradients = gradients_persist()};
    if (content().has_head) bill.items[Item::logits] = (out_.logit_sets - 1.0) * logit_set();  // those whose backward is still to come
    layer_backward(bill.items);
    gathered(bill.items, memory_.gathered_layers);
    bill.items[Item::reduce_buffer] = reduce_buffer();
    between_micro_batches(bill.items);
    consider(bill);
  }

  /// The last backward of a step reaches the first layer. Matters where gradients pile up on the way: whole ones under sharded
  /// weights, all of them where they are made anew in every step.
  void end_of_backward() {
    if (!weights_sharded() && gradients_persist()) return;
    InstantBill bill{.instant = Instant::end_of_backward, .items = static_};
    layer_backward(bill.items);
    bill.items[Item::last_layer] = first_layer_kept();
    gathered(bill.items, 1.0);
    table_unit(bill.items, content().embedding);
    bill.items[Item::reduce_buffer] = reduce_buffer();
    between_micro_batches(bill.items);
    // Hooks on a frozen base hold the hidden gradient at every boundary between layers, and what those layers kept; the last
    // two boundaries are in the working set.
    if (weights_sharded() && in_.scenario.run.frozen_base && memory_.boundary_gradients_kept) {
      bill.keeps_activations = true;
      bill.items[Item::last_layer] = 0;
      bill.items[Item::boundary_gradients] = std::max(0.0, content().layers - 2.0) * layer_input();
    }
    consider(bill);
  }

  void optimizer_step() {
    InstantBill bill{.instant = Instant::optimizer_step, .items = static_};
    switch (memory_.optimizer_temporary) {
      case OptimizerTemporary::none:
        break;
      case OptimizerTemporary::largest_tensor:
        bill.items[Item::optimizer_temporary] = in_.scenario.run.frozen_base ? 0.0 : kFp32Bytes * largest_state_shard();
        break;
      case OptimizerTemporary::all_gradients:
        bill.items[Item::optimizer_temporary] = gradients_;
        break;
    }
    bill.items[Item::fp16_gradient_copy] = StateRates::sum(content().elements, in_.rates.step_copy);
    consider(bill);
  }

  /// Made once, before anything of a step is alive and before the optimizer has states.
  void mask_creation() {
    if (memory_.mask_creation_bytes <= 0) return;
    InstantBill bill{.instant = Instant::mask, .items = static_, .steady_moments = false};
    const double square = in_.shape.square_bytes / in_.config.micro_batch_size;
    bill.items[Item::mask_creation] = memory_.mask_creation_bytes * square;
    consider(bill);
  }

  /// Gradients are there before the backward: kept from step to step, or from the micro-batch before.
  [[nodiscard]] bool gradients_persist() const { return !memory_.gradients_freed_between_steps || in_.config.micro_batch_num > 1; }

  // --- Parts of instants -----------------------------------------------------------------------------------------------

  [[nodiscard]] double logit_set() const {
    const double bytes = in_.config.tp > 1 ? memory_.logit_bytes_tp : memory_.logit_bytes;
    return bytes * in_.shape.logit_elements * (1.0 + static_cast<double>(content().mtp_blocks));
  }

  /// Backward of the layer that needs most; what recompute dropped is there again for this one layer.
  void layer_backward(ItemBytes& items) const {
    double worst = 0;
    const auto offer = [&](const LedgerSummary& ledger, double recomputed) {
      if (ledger.working_set + recomputed < worst) return;
      worst = ledger.working_set + recomputed;
      items[Item::layer_working_set] = memory_.working_set_layers * ledger.working_set;
      items[Item::recomputed_layer] = memory_.working_set_layers * recomputed;
    };
    for (const layout::Chunk& chunk : in_.chunks) {
      for (std::size_t k = 0; k < chunk.layers_by_kind.size(); ++k) {
        if (chunk.layers_by_kind[k] == 0) continue;
        const LedgerSummary& ledger = in_.shape.kinds[k];
        offer(ledger, recomputed_bytes(memory_, ledger, recompute_shares(chunk, k).heaviest()));
      }
      if (chunk.mtp_blocks > 0)
        offer(in_.shape.mtp, recomputed_bytes(memory_, in_.shape.mtp, mtp_shares(chunk, in_.config.recompute).heaviest()));
    }
    if (!memory_.flash_attention) items[Item::attention_mask] = kMaskBytes * in_.shape.square_bytes / in_.config.cp;
  }

  [[nodiscard]] double first_layer_kept() const {
    const layout::Chunk& chunk = in_.chunks.front();
    double bytes = chunk.embedding ? in_.shape.embedding.saved[index(Recompute::off)] : 0.0;
    for (std::size_t k = 0; k < chunk.layers_by_kind.size(); ++k)
      if (chunk.layers_by_kind[k] > 0) return bytes + recompute_shares(chunk, k).mix(in_.shape.kinds[k].saved);
    return bytes;
  }
  [[nodiscard]] double layer_input() const {
    for (std::size_t k = 0; k < in_.shape.kinds.size(); ++k)
      if (on_stage(k)) return in_.shape.kinds[k].input_bytes;
    return 0;
  }

  [[nodiscard]] bool weights_sharded() const {
    return std::ranges::any_of(in_.rates.weight_ranks, [](double ranks) { return ranks > 1; });
  }
  /// Elements of `count` that other ranks of the data-parallel group hold a share of.
  [[nodiscard]] double sharded_elements(const ElementCount& count) const {
    double sum = 0;
    for (std::size_t i = 0; i < kParameterClassCount; ++i)
      if (in_.rates.weight_ranks[i] > 1) sum += count.all[i];
    return sum;
  }
  void gathered(ItemBytes& items, double layers_alive) const {
    if (!weights_sharded()) return;
    const double wire = in_.scenario.run.frozen_base ? std::min(memory_.gathered_weight_bytes, in_.scenario.run.base_weight_bytes)
                                                     : memory_.gathered_weight_bytes;
    items[Item::gathered_layers] =
        wire * std::min(sharded_elements(content().body), layers_alive * sharded_elements(content().largest_layer));
    if (memory_.fsdp_root_gathered)
      items[Item::gathered_tables] = memory_.gathered_weight_bytes * (sharded_elements(content().embedding) + sharded_elements(content().head));
  }
  /// A table that is a unit of its own: gathered weight, gradient in the compute type, and the input of its reduction, unless
  /// the profile states the three together.
  void table_unit(ItemBytes& items, const ElementCount& table) const {
    if (!weights_sharded() || memory_.fsdp_root_gathered) return;
    const double elements = sharded_elements(table);
    const double stated = memory_.fsdp_table_bytes - memory_.gathered_weight_bytes;
    const double gradient = memory_.fsdp_table_bytes > 0 ? std::max(0.0, stated) : kComputeBytes + memory_.reduce_buffer_bytes;
    items[Item::gathered_tables] = memory_.gathered_weight_bytes * elements;
    if (!in_.scenario.run.frozen_base) items[Item::table_gradient] = gradient * elements;
  }
  [[nodiscard]] double reduce_buffer() const {
    if (!weights_sharded() || in_.scenario.run.frozen_base) return 0;
    return memory_.reduce_buffer_bytes * sharded_elements(content().largest_layer);
  }
  /// Frameworks that skip the reduction until the last micro-batch hold whole gradients meanwhile.
  void between_micro_batches(ItemBytes& items) const {
    if (!memory_.accumulates_whole_gradients || in_.config.micro_batch_num < 2 || in_.config.zero < ZeroLevel::gradients) return;
    items[Item::unsharded_gradients] = in_.scenario.run.frozen_base ? kFp32Bytes * out_.trained_elements
                                                                    : kComputeBytes * sharded_gradient_elements();
  }
  [[nodiscard]] double sharded_gradient_elements() const {
    return in_.config.op > 1 ? content().elements.total() : 0.0;
  }
  [[nodiscard]] double largest_state_shard() const {
    double largest = 0;
    for (std::size_t i = 0; i < kParameterClassCount; ++i)
      largest = std::max(largest, content().largest_tensor[i] / in_.rates.optimizer_ranks[i]);
    return largest;
  }

  // --- Peak ------------------------------------------------------------------------------------------------------------

  void consider(const InstantBill& bill) {
    StageMemory now;
    now.stage = in_.stage;
    now.instant = bill.instant;
    // A counter read after the first step has seen activations before the states were made; the run itself has both.
    const bool first = reading_ == ReadingTime::first_iteration && bill.instant != Instant::optimizer_step;
    const bool moments = bill.steady_moments && !first;
    now.parameters = {parameters_};
    // Whole gradients that wait for the last micro-batch are the gradients; their shards come with the reduction.
    const bool whole = bill.items[Item::unsharded_gradients] > 0;
    now.gradients = {bill.has_gradients && !whole ? gradients_ : 0.0};
    now.optimizer_states = {main_ + (moments ? moments_ : 0.0)};
    const auto parts = bill.items.by_part();
    const auto of = [&parts](Part part) { return parts[static_cast<std::size_t>(part)]; };
    now.workspace = {of(Part::workspace)};
    now.buffers = {of(Part::buffers)};
    now.activations = {of(Part::activations) + (bill.keeps_activations ? out_.activations : 0.0)};
    now.logits = {of(Part::logits)};
    now.working_set = {of(Part::working_set)};
    now.temporary = {of(Part::temporary)};
    now.in_flight = bill.keeps_activations ? out_.in_flight : 0.0;
    now.allocated = now.static_bytes() + now.dynamic_bytes();
    const double steady_static = now.static_bytes().value + (bill.steady_moments && first ? moments_ : 0.0);
    // The step's temporaries find the room that activations left: they do not fragment (74.8 GiB allocated ran on 79.15).
    const double dynamic = now.dynamic_bytes().value;
    const double held = bill.instant == Instant::optimizer_step ? in_.reserve.held(steady_static, 0) + dynamic
                                                                : in_.reserve.held(steady_static, dynamic);
    out_.held[static_cast<std::size_t>(bill.instant)] = held;
    const double most_held = std::max(held_, held);
    if (!(out_.memory.allocated.value > 0) || now.allocated > out_.memory.allocated) {
      out_.memory = now;
      out_.items = bill.items;
      out_.keeps_activations = bill.keeps_activations;
      out_.has_gradients = bill.has_gradients && !whole;
      out_.has_moments = moments;
    }
    held_ = most_held;
    out_.memory.cached = {most_held + in_.reserve.holes};
    out_.memory.reserved = {most_held + in_.reserve.constant};
  }

  const StageInput& in_;
  const MemoryProfile& memory_;
  ReadingTime reading_;
  StagePrice& out_;
  double parameters_ = 0, gradients_ = 0, main_ = 0, moments_ = 0;
  double held_ = 0;  ///< most bytes held at an instant so far
  ItemBytes static_;
};

}  // namespace

double recomputed_bytes(const MemoryProfile& memory, const LedgerSummary& ledger, Recompute mode) {
  if (memory.working_set_covers_recompute) return 0;
  if (mode == Recompute::selective) return std::max(0.0, ledger.saved[index(Recompute::off)] - ledger.saved[index(Recompute::selective)]);
  return mode == Recompute::full ? ledger.saved[index(Recompute::off)] : 0.0;
}

void prepare_stage(const StageInput& input, StagePrice& out) { StagePricer(input, ReadingTime::steady, out).prepare(); }

void price_prepared_stage(const StageInput& input, ReadingTime reading, StagePrice& out) { StagePricer(input, reading, out).price(); }

void price_stage(const StageInput& input, ReadingTime reading, StagePrice& out) {
  prepare_stage(input, out);
  price_prepared_stage(input, reading, out);
}

}  // namespace nd::memory
