// SPDX-License-Identifier: Apache-2.0
#include "formats/megatron/stages.hpp"

#include <algorithm>
#include <numeric>

#include "core/text.hpp"
#include "formats/readers/section.hpp"

namespace nd::formats::megatron {

namespace {

using Counts = std::vector<std::int64_t>;

constexpr std::int64_t kMostStages = 1 << 12;  // chunks of a pipeline, all stages together
constexpr std::size_t kMostLayoutText = 1 << 16;

/// The repetitions of a layout written out.
std::optional<std::string> unfold(std::string_view text, int depth) {
  constexpr int kDeepest = 20;
  if (depth > kDeepest) return std::nullopt;
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    std::string unit(1, text[i]);
    if (text[i] == ')') return std::nullopt;
    if (text[i] == '(') {
      std::size_t end = i + 1;
      for (int open = 1; end < text.size(); ++end) {
        if (text[end] == '(') ++open;
        if (text[end] == ')' && --open == 0) break;
      }
      if (end >= text.size()) return std::nullopt;
      const auto inner = unfold(text.substr(i + 1, end - i - 1), depth + 1);
      if (!inner) return std::nullopt;
      unit = *inner;
      i = end;
    }
    ++i;
    std::int64_t times = 1;
    if (i < text.size() && text[i] == '*') {
      std::size_t end = i + 1;
      while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
      const auto number = core::parse_integer(text.substr(i + 1, end - i - 1));
      if (!number || *number < 0 || *number > static_cast<std::int64_t>(kMostLayoutText)) return std::nullopt;
      times = *number;
      i = end;
    }
    if (unit.size() * static_cast<std::size_t>(times) + out.size() > kMostLayoutText) return std::nullopt;
    for (std::int64_t n = 0; n < times; ++n) out += unit;
  }
  return out;
}

class StageReader {
 public:
  StageReader(Fields& fields, const Model& model, RunSpec& run) : f_(fields), model_(model), run_(run) {}

  void read() {
    degrees();
    if (model_.slots > 0 && chunks_known_) layers();
    recompute();
  }

 private:
  [[nodiscard]] std::int64_t pp() const { return run_.pp.value_or(1); }
  [[nodiscard]] std::int64_t vpp() const { return run_.vpp.value_or(1); }
  [[nodiscard]] std::int64_t chunks() const { return pp() * vpp(); }
  [[nodiscard]] bool v_shaped() const { return run_.schedule == Schedule::dualpipe_v; }

  void degrees() {
    const Names stages{"pipeline_model_parallel_size"};
    auto value = f_.positive(stages);
    if (value && *value > kMostStages) {
      f_.error(stages, Errc::out_of_range, "is too large: " + std::to_string(*value));
      value.reset();
      chunks_known_ = false;
    } else if (!value && f_.has(stages)) {
      chunks_known_ = false;
    }
    state(run_, "pp", &RunSpec::pp, std::optional<std::int64_t>(value.value_or(1)), f_.where(stages));
    schedule();
    virtual_stages();
    if (!run_.schedule && vpp() > 1) run_.schedule = Schedule::interleaved;
  }

  void schedule() {
    const Names names{"schedules_method"};
    const auto word = f_.word(names);
    if (!word) return;
    const std::string name = core::canonical_name(*word);
    if (name != "dualpipev")
      return f_.error(names, Errc::unsupported, "'" + *word + "' is no schedule that is priced", "dualpipev");
    if (pp() == 1) return f_.error(names, Errc::conflict, "needs more than one stage");
    state(run_, "schedule", &RunSpec::schedule, std::optional<Schedule>(Schedule::dualpipe_v), f_.where(names));
    state(run_, "vpp", &RunSpec::vpp, std::optional<std::int64_t>(2), f_.where(names));
  }

  void virtual_stages() {
    const Names by_layers{"num_layers_per_virtual_pipeline_stage"}, by_count{"num_virtual_stages_per_pipeline_rank"},
        by_layout{"pipeline_model_parallel_layout"}, derived{"virtual_pipeline_model_parallel_size"};
    const auto size = f_.positive(by_layers), count = f_.positive(by_count);
    const auto resolved = f_.positive(derived);  // only a dump has it; the others say it as well
    const int stated = (f_.has(by_layers) ? 1 : 0) + (f_.has(by_count) ? 1 : 0) + (f_.has(by_layout) ? 1 : 0);
    if (stated > 1)
      f_.error(f_.has(by_layers) ? by_layers : by_count, Errc::conflict,
               "only one of --num-layers-per-virtual-pipeline-stage, --num-virtual-stages-per-pipeline-rank and --pipeline-model-parallel-layout may be given");
    if (v_shaped()) {
      if (f_.has(by_layers) || f_.has(by_count)) f_.error({"schedules_method"}, Errc::conflict, "dualpipev has two chunks a stage of its own; virtual stages are stated besides");
      return;
    }
    if (f_.has(by_layout)) return layout_text();
    if (size) return from_layers(by_layers, *size);
    const auto chosen = count ? count : resolved;
    if (!chosen) return;
    const Names names = count ? by_count : derived;
    if (*chosen * pp() > kMostStages) return f_.error(names, Errc::out_of_range, "is too large: " + std::to_string(*chosen));
    if (*chosen > 1 && pp() == 1) return f_.error(names, Errc::conflict, "virtual stages need more than one pipeline stage");
    state(run_, "vpp", &RunSpec::vpp, chosen, f_.where(names));
  }

  [[nodiscard]] std::int64_t pseudo(Names names) { return f_.on(names) ? 1 : 0; }
  [[nodiscard]] std::int64_t slots_with_ends() {
    return model_.slots + pseudo({"account_for_embedding_in_pipeline_split"}) + pseudo({"account_for_loss_in_pipeline_split"});
  }

  void from_layers(Names names, std::int64_t size) {
    const std::int64_t all = slots_with_ends();
    if (pp() == 1) return f_.error(names, Errc::conflict, "virtual stages need more than one pipeline stage");
    if (all == 0 || !chunks_known_) return;
    const std::int64_t per_stage = all / pp();
    if (all % pp() != 0 || per_stage % size != 0) {
      chunks_known_ = false;
      if (all % pp() != 0) not_even(all, pp());
      if (all % pp() != 0 ? all % size != 0 : per_stage % size != 0)
        f_.error(names, Errc::conflict,
                 all % pp() != 0 ? std::to_string(all) + " layers are no multiple of virtual stages of " + std::to_string(size)
                                 : "the " + std::to_string(per_stage) + " layers of a stage are no multiple of virtual stages of " + std::to_string(size));
      return;
    }
    state(run_, "vpp", &RunSpec::vpp, std::optional<std::int64_t>(per_stage / size), f_.where(names));
  }

  void not_even(std::int64_t all, std::int64_t parts) {
    const std::int64_t below = all / parts * parts;
    f_.error({"num_layers"}, Errc::conflict,
             std::to_string(all) + " layers are no multiple of " + (parts == pp() ? "PP " + std::to_string(pp()) : "PP " + std::to_string(pp()) + " x " + std::to_string(parts / pp()) + " chunks"),
             "nearest: " + (below > 0 ? std::to_string(below) + " or " : "") + std::to_string(below + parts) + "; or state the layers of the stages");
  }

  void layout_text() {
    const Names names{"pipeline_model_parallel_layout"};
    const auto text = f_.word(names);
    if (!text) return;
    const auto stages = parse_layout(*text);
    if (!stages) {
      chunks_known_ = false;
      return f_.error(names, Errc::syntax, "'" + text->substr(0, 60) + "' is no layout", "E, t, m, L and | as in Et*3|(tt|)*6L");
    }
    const auto count = static_cast<std::int64_t>(stages->size());
    if (count % pp() != 0 || count > kMostStages) {
      chunks_known_ = false;
      return f_.error(names, Errc::conflict, std::to_string(count) + " stages are no multiple of PP " + std::to_string(pp()));
    }
    if (pp() > 1) state(run_, "vpp", &RunSpec::vpp, std::optional<std::int64_t>(count / pp()), f_.where(names));
    Counts at(stages->size());
    std::transform(stages->begin(), stages->end(), at.begin(), [](const LayoutStage& one) { return one.layers; });
    place(at, names);
  }

  /// Stated layers by place in the model, [0, pp * vpp), to [chunk][stage]. Lists go round and round whatever way the schedule runs.
  void place(const Counts& at, Names names) {
    const auto p = static_cast<std::size_t>(pp());
    std::vector<Counts> out(at.size() / p, Counts(p, 0));
    for (std::size_t i = 0; i < at.size(); ++i) out[i / p][i % p] = at[i];
    const std::int64_t sum = std::accumulate(at.begin(), at.end(), std::int64_t{0});
    const std::int64_t wanted = model_.spec.num_hidden_layers.value_or(sum);
    if (sum != wanted) return f_.error(names, Errc::conflict, "the stages hold " + std::to_string(sum) + " layers, the model has " + std::to_string(wanted));
    if (std::any_of(at.begin(), at.end(), [](std::int64_t count) { return count < 0; })) return f_.error(names, Errc::out_of_range, "a stage with less than no layers");
    run_.layers_per_chunk = std::move(out);
    run_.origins["layers_per_chunk"] = {Origin::Kind::file, f_.where(names)};
  }

  void layers() {
    const Names list{"num_layer_list"}, first{"decoder_first_pipeline_num_layers"}, last{"decoder_last_pipeline_num_layers"},
        both{"account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"};
    const bool ends = pseudo({"account_for_embedding_in_pipeline_split"}) + pseudo({"account_for_loss_in_pipeline_split"}) > 0;
    if (f_.has({"pipeline_model_parallel_layout"})) {
      if (f_.has(first) || f_.has(last) || ends)
        f_.error({"pipeline_model_parallel_layout"}, Errc::conflict, "says what other arguments about the layers of stages say as well");
      return;
    }
    if (f_.has(list)) return layer_list(list);
    if (f_.has(first) || f_.has(last)) return uneven_ends(first, last, ends);
    const std::int64_t all = slots_with_ends();
    if (all % chunks() != 0) {
      if (all % pp() != 0 || f_.problems.empty()) not_even(all, all % pp() != 0 ? pp() : chunks());
      return;
    }
    if (!ends && model_.empty.empty()) return;  // the even split, which is the trainer's own
    Counts at(static_cast<std::size_t>(chunks()), all / chunks());
    if (ends) {
      at.front() -= pseudo({"account_for_embedding_in_pipeline_split"});
      at.back() -= pseudo({"account_for_loss_in_pipeline_split"});
    }
    without_empty(at);
    place(at, model_.empty.empty() ? both : Names{"noop_layers"});
  }

  /// Takes the no-op layers out of the counts; they keep their places.
  void without_empty(Counts& at) const {
    std::int64_t begin = 0;
    for (auto& count : at) {
      const std::int64_t end = begin + count;
      const auto from = std::lower_bound(model_.empty.begin(), model_.empty.end(), begin), to = std::lower_bound(model_.empty.begin(), model_.empty.end(), end);
      begin = end;
      count -= to - from;
    }
  }

  void layer_list(Names names) {
    const auto list = f_.integers(names);
    if (!list) return;
    if (!model_.empty.empty()) return f_.warn(names, Errc::conflict, "has no effect with --noop-layers");
    const auto fits = static_cast<std::int64_t>(list->size()) == pp();
    if (!fits) f_.error(names, Errc::conflict, "has " + std::to_string(list->size()) + " entries for " + std::to_string(pp()) + " stages");
    if (pp() == 1) f_.error(names, Errc::conflict, "needs more than one stage");
    if (vpp() > 1) f_.error(names, Errc::conflict, "cannot be combined with virtual stages or dualpipev");
    if (fits && pp() > 1 && vpp() == 1) place(*list, names);
  }

  /// The first and the last stage as stated, the others even; with virtual stages each stage's share is even over its chunks.
  void uneven_ends(Names first, Names last, bool ends) {
    const auto a = f_.positive(first), b = f_.positive(last);
    const Names names = a ? first : last;
    if (ends) return f_.error(names, Errc::conflict, "cannot be combined with --account-for-...-in-pipeline-split");
    if (pp() == 1) return f_.error(names, Errc::conflict, "needs more than one stage");
    const std::int64_t stated = (a ? 1 : 0) + (b ? 1 : 0), middle = pp() - stated;
    const std::int64_t rest = model_.slots - a.value_or(0) - b.value_or(0);
    if (rest < 0 || (middle == 0 ? rest != 0 : rest % middle != 0))
      return f_.error(names, Errc::conflict, std::to_string(rest) + " layers are left for the other " + std::to_string(middle) + " stages, which is no even split");
    Counts per_stage(static_cast<std::size_t>(pp()), middle == 0 ? 0 : rest / middle);
    if (a) per_stage.front() = *a;
    if (b) per_stage.back() = *b;
    for (const auto count : per_stage)
      if (count % vpp() != 0)
        return f_.error(names, Errc::conflict, "a stage of " + std::to_string(count) + " layers does not split into " + std::to_string(vpp()) + " chunks");
    Counts at;
    for (std::int64_t chunk = 0; chunk < vpp(); ++chunk)
      for (const auto count : per_stage) at.push_back(count / vpp());
    without_empty(at);
    place(at, names);
  }

  // --- recompute -------------------------------------------------------------------------------------------------------

  void recompute() {
    const Names granularity{"recompute_granularity"}, method{"recompute_method"}, number{"recompute_num_layers", "activations_checkpoint_num_layers"};
    auto mode = f_.word(granularity);
    const auto how = f_.word({"recompute_method", "activations_checkpoint_method"});
    const bool old_full = f_.on({"checkpoint_activations"}) || f_.has({"activations_checkpoint_method"});
    const bool old_selective = f_.on({"recompute_activations"});
    const auto count = f_.positive(number);
    if (!mode && old_full) mode = "full";
    if (!mode && old_selective) mode = "selective";
    if (!mode) {
      state(run_, "recompute", &RunSpec::recompute, std::optional<Recompute>(Recompute::off), f_.where(granularity));
      if (f_.has(method) || f_.has(number)) f_.note(method, "has no effect without --recompute-granularity full");
      return;
    }
    const std::string name = core::canonical_name(*mode);
    const auto set = [&](Recompute value) { state(run_, "recompute", &RunSpec::recompute, std::optional<Recompute>(value), f_.where(granularity)); };
    if (name == "selective") return set(Recompute::selective);
    if (name != "full") return f_.error(granularity, Errc::out_of_range, "'" + *mode + "' is no granularity", "full or selective");
    set(Recompute::full);
    const std::string kind = how ? core::canonical_name(*how) : std::string("uniform");
    if (!how) f_.warn(method, Errc::missing_field, "is not stated; uniform is assumed");
    if (kind == "uniform") {
      if (count.value_or(1) > 1)
        f_.note(number, "one input is kept for every " + std::to_string(*count) + " layers; priced as one for each");
      return;
    }
    if (kind != "block") return f_.error(method, Errc::out_of_range, "'" + *how + "' is no method", "uniform or block");
    if (!count && !f_.has(number)) f_.warn(number, Errc::missing_field, "is not stated; 1 layer a block is assumed");
    if (chunks_known_ && model_.slots > 0) block(count.value_or(1), number);
  }

  /// The first `count` layers of each chunk (MindSpeed's switch: of each stage).
  void block(std::int64_t count, Names names) {
    const auto p = static_cast<std::size_t>(pp());
    std::vector<Counts> chunks_of = run_.layers_per_chunk;
    const std::int64_t layers = model_.spec.num_hidden_layers.value_or(0);
    if (chunks_of.empty()) {
      if (layers % chunks() != 0) return;  // reported
      chunks_of.assign(static_cast<std::size_t>(vpp()), Counts(p, layers / chunks()));
    }
    const bool of_stage = f_.on({"enable_recompute_layers_per_pp_rank"});
    Counts full(p, 0);
    for (std::size_t stage = 0; stage < p; ++stage) {
      std::int64_t whole = 0;
      for (const auto& chunk : chunks_of) {
        full[stage] += of_stage ? chunk[stage] : std::min(count, chunk[stage]);
        whole += chunk[stage];
      }
      if (of_stage) full[stage] = std::min(count, whole);
    }
    const std::int64_t all = std::accumulate(full.begin(), full.end(), std::int64_t{0});
    if (all == layers) return;  // every layer: no list is needed
    run_.full_recompute_layers = std::move(full);
    run_.origins["full_recompute_layers"] = {Origin::Kind::file, f_.where(names)};
  }

  Fields& f_;
  const Model& model_;
  RunSpec& run_;
  bool chunks_known_ = true;
};

}  // namespace

std::optional<std::vector<LayoutStage>> parse_layout(std::string_view text) {
  std::string plain;
  for (const char c : text)
    if (c != ',' && c != ' ' && c != '"' && c != '\'' && c != '\\') plain += c;
  const auto unfolded = unfold(plain, 0);
  if (!unfolded || unfolded->empty()) return std::nullopt;
  std::vector<LayoutStage> out(1);
  for (const char c : *unfolded) {
    switch (c) {
      case 'E': out.back().embedding = true; break;
      case 't': ++out.back().layers; break;
      case 'm': ++out.back().mtp; break;
      case 'L': out.back().loss = true; break;
      case '|': out.emplace_back(); break;
      default: return std::nullopt;
    }
  }
  return out;
}

void read_stages(Fields& fields, const Model& model, RunSpec& run) { StageReader(fields, model, run).read(); }

}  // namespace nd::formats::megatron
