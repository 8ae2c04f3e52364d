// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <type_traits>
#include <utility>
#include <variant>

#include "nd/diagnostic.hpp"

namespace nd {

/// A broken invariant of this library: a bug of ours, never an input's fault.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// A value or the reasons why there is none. Members are a subset of std::expected<T, Error>.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  using error_type = Error;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor): as std::expected
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor): stands for std::unexpected

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  /// Throws InternalError when there is no value.
  [[nodiscard]] const T& value() const& {
    check();
    return std::get<0>(state_);
  }
  [[nodiscard]] T& value() & {
    check();
    return std::get<0>(state_);
  }
  [[nodiscard]] T&& value() && {
    check();
    return std::get<0>(std::move(state_));
  }
  [[nodiscard]] const T& operator*() const& { return value(); }
  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] T&& operator*() && { return std::move(*this).value(); }
  [[nodiscard]] const T* operator->() const { return &value(); }
  [[nodiscard]] T* operator->() { return &value(); }

  /// Throws InternalError when there is a value.
  [[nodiscard]] const Error& error() const& {
    if (has_value()) throw InternalError("Result::error() called on a value");
    return std::get<1>(state_);
  }

  template <class F>
  [[nodiscard]] auto and_then(F&& next) const& -> std::invoke_result_t<F, const T&> {
    if (!has_value()) return error();
    return std::forward<F>(next)(value());
  }
  template <class F>
  [[nodiscard]] auto transform(F&& map) const& -> Result<std::invoke_result_t<F, const T&>> {
    if (!has_value()) return error();
    return std::forward<F>(map)(value());
  }

 private:
  void check() const {
    if (!has_value()) throw InternalError("Result::value() called on an error: " + describe());
  }
  [[nodiscard]] std::string describe() const {
    const auto& all = std::get<1>(state_).diagnostics;
    return all.empty() ? std::string("(no diagnostic)") : to_text(all.front());
  }
  std::variant<T, Error> state_;
};

namespace detail {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}  // namespace detail

}  // namespace nd

/// States an invariant of ours; throws nd::InternalError when broken. Always on: keep it off the per-candidate path.
#define ND_CHECK(condition)                                                   \
  do {                                                                        \
    if (!(condition)) ::nd::detail::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)
