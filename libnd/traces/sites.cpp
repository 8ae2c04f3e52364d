// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "core/text.hpp"
#include "traces/chrome.hpp"

namespace nd::traces {

namespace {

enum class Site { sequence, tensor, context, expert, pipeline, clip, sharded, trainer };
struct SiteName {
  std::string_view part;
  Site site;
};
/// Parts of a frame's name (file and function) that say whose wait it is; earlier rows first where a name has several.
constexpr std::array<SiteName, 17> kSites{{{"sequence_parallel", Site::sequence},
                                           {"context_parallel", Site::context},
                                           {"ring_attention", Site::context},
                                           {"expert_parallel", Site::expert},
                                           {"token_dispatcher", Site::expert},
                                           {"pipeline_parallel", Site::pipeline},
                                           {"pipelining", Site::pipeline},
                                           {"tensor_parallel", Site::tensor},
                                           {"tensor/parallel", Site::tensor},
                                           {"distributed/tensor/", Site::tensor},
                                           {"distributed/_tensor/", Site::tensor},
                                           {"clip_grad", Site::clip},
                                           {"fully_shard", Site::sharded},
                                           {"_fsdp", Site::sharded},
                                           {"fsdp/", Site::sharded},
                                           {"trainer", Site::trainer},
                                           {"train_step", Site::trainer}}};

const SiteName* find_site(std::string_view frame) {
  const std::string lower = core::canonical_name(frame);
  for (const SiteName& entry : kSites)
    if (lower.find(entry.part) != std::string::npos) return &entry;
  return nullptr;
}

/// Letters of a collective's name: "c10d::_allgather_base_", "hcom_allGather__123", "ncclDevKernel_AllGather_RING_LL".
bool is_collective(std::string_view name, std::string_view letters) {
  std::string plain;
  for (const char c : name)
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain.find(letters) != std::string::npos;
}

std::int64_t degree(const ClassifyRequest& request, std::initializer_list<std::string_view> names) {
  for (const auto& [name, value] : request.dims)
    for (const std::string_view wanted : names)
      if (name == wanted) return value;
  return 1;
}

}  // namespace

bool names_site(std::string_view frame) { return find_site(frame) != nullptr; }

std::optional<WaitKind> wait_by_site(const std::vector<std::string_view>& frames, std::string_view collective) {
  for (const std::string_view frame : frames) {
    const SiteName* site = find_site(frame);
    if (site == nullptr) continue;
    switch (site->site) {
      case Site::sequence: return WaitKind::sp;
      case Site::tensor: return WaitKind::mp;
      case Site::context: return WaitKind::cp;
      case Site::expert: return WaitKind::ep;
      case Site::pipeline: return WaitKind::pp;
      case Site::sharded: return is_collective(collective, "allgather") ? WaitKind::op : WaitKind::dp;
      case Site::clip:
      case Site::trainer: return WaitKind::dp;
    }
  }
  return std::nullopt;
}

std::optional<WaitKind> wait_by_collective(std::string_view name, const ClassifyRequest& request) {
  if (is_collective(name, "alltoall")) return WaitKind::ep;
  if (is_collective(name, "allgather") || is_collective(name, "reducescatter")) {
    if (degree(request, {"MP", "TP"}) > 1 || degree(request, {"CP"}) > 1) return std::nullopt;
    return WaitKind::op;
  }
  if (is_collective(name, "allreduce")) return WaitKind::dp;
  // NCCL runs all-to-all as sends and receives: with both pipelines and experts the kernel does not tell them apart.
  if (is_collective(name, "sendrecv")) {
    const bool pipeline = degree(request, {"PP"}) > 1, experts = degree(request, {"EP"}) > 1;
    if (pipeline == experts) return std::nullopt;
    return pipeline ? WaitKind::pp : WaitKind::ep;
  }
  if (is_collective(name, "send") || is_collective(name, "receive") || is_collective(name, "recv")) return WaitKind::pp;
  return std::nullopt;
}

std::optional<std::int64_t> rank_in_name(const std::string& name) {
  const std::string lower = core::canonical_name(name.substr(name.find_last_of('/') + 1));
  for (std::size_t at = 0; (at = lower.find("rank", at)) != std::string::npos; at += 4) {
    std::size_t digits = at + 4;
    if (digits < lower.size() && (lower[digits] == '_' || lower[digits] == '-')) ++digits;
    std::int64_t rank = 0;
    const auto [end, error] = std::from_chars(lower.data() + digits, lower.data() + lower.size(), rank);
    if (error == std::errc{} && end != lower.data() + digits) return rank;
  }
  return std::nullopt;
}

std::optional<std::int64_t> nanoseconds(const std::string& microseconds) {
  constexpr std::int64_t kMost = 9'000'000'000'000'000;  // microseconds whose nanoseconds fit
  std::int64_t whole = 0;
  const char* const end = microseconds.data() + microseconds.size();
  const auto [dot, error] = std::from_chars(microseconds.data(), end, whole);
  if (error != std::errc{} || whole < 0 || whole > kMost) return std::nullopt;
  std::int64_t fraction = 0, scale = 100;
  if (dot != end && *dot != '.') {
    // An exponent: small numbers only, where a double is exact enough.
    const auto value = core::parse_real(microseconds);
    if (!value || *value < 0 || *value > 1e9) return std::nullopt;
    return static_cast<std::int64_t>(*value * 1000.0 + 0.5);
  }
  for (const char* digit = dot == end ? end : dot + 1; digit != end && scale > 0; ++digit, scale /= 10) {
    if (std::isdigit(static_cast<unsigned char>(*digit)) == 0) return std::nullopt;
    fraction += scale * (*digit - '0');
  }
  return whole * 1000 + fraction;
}

}  // namespace nd::traces
