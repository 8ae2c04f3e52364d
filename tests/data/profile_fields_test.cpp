// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <set>
#include <string>
#include <utility>

#include "run/profile_fields.hpp"

namespace {

/// Converts to anything: counts the members of an aggregate by how many initialisers it takes.
struct Anything {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor): never called
};
template <class T, std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), Anything{})...}; };
}
template <class T, std::size_t N = 128>
constexpr std::size_t member_count() {
  if constexpr (takes<T>(std::make_index_sequence<N>{})) {
    return N;
  } else {
    return member_count<T, N - 1>();
  }
}

template <class Section>
void check_table(std::span<const nd::run::ProfileField<Section>> table) {
  std::set<std::string_view> names;
  for (const auto& field : table) CHECK(names.insert(field.name).second);
  CHECK(table.size() == member_count<Section>());
}

}  // namespace

TEST_CASE("every member of the profiles is one row of the table") {
  check_table(nd::run::memory_fields());
  check_table(nd::run::time_fields());
  check_table(nd::run::capability_fields());
}

TEST_CASE("enum texts are distinct") {
  CHECK(std::string(to_text(nd::Dispatcher::deduplicating)) == "deduplicating");
  CHECK(std::string(to_text(nd::OptimizerTemporary::largest_tensor)) == "largest_tensor");
  CHECK(std::string(to_text(nd::DataParallelStyle::mindspore)) == "mindspore");
}
